// NodeReader: reads and checks the fields of a node's record.
#ifndef TF_LSTM_OPS_SESSION_NODE_READER_H_
#define TF_LSTM_OPS_SESSION_NODE_READER_H_

#include <cstdint>
#include <initializer_list>

#include "core/layer_direction.h"
#include "session/error.h"
#include "session/file_format.h"

namespace tf_lstm_ops::session {

// Each function reads one field. Where the field is wrong, the reader fails:
// ok() is false from then on, and the first error stays. The value that comes
// back is then within the bounds. Finish() fails where a field that nobody read
// is not zero.
class NodeReader {
 public:
  NodeReader(const FileView& file, const NodeRecord& record, uint32_t index,
             Error* error);

  bool ok() const { return ok_; }
  bool Finish();
  // Fails with a text as of printf, after "layer k: ".
#if defined(__GNUC__)
  __attribute__((format(printf, 2, 3)))
#endif
  void
  Fail(const char* format, ...);

  // The fields by their names in the format.
  uint32_t Cell(uint32_t low, uint32_t high);
  uint32_t Directions(uint32_t low, uint32_t high);
  uint32_t Merge(uint32_t low, uint32_t high);
  uint32_t Activation(uint32_t low, uint32_t high);
  uint32_t RecurrentActivation(uint32_t low, uint32_t high);
  // The functions of a cell: the same fields, and that of the cell state, which
  // is `activation` where the field is 0. `has_numbers` becomes true where one
  // of them has numbers.
  struct CellFunctions {
    uint32_t gates, candidate, state;
    bool has_numbers;
  };
  CellFunctions Functions(bool has_gates, bool has_state);
  // The bits of `allowed` may be set.
  uint32_t Flags(uint32_t allowed);
  // Sizes of at most kMaxSize.
  int64_t InputSize(int64_t low = 1, int64_t high = kMaxSize);
  int64_t Units(int64_t low = 1, int64_t high = kMaxSize);
  int64_t HiddenSize(int64_t low, int64_t high);
  // ints[k], which messages call `name`.
  int64_t Int(int k, const char* name, int64_t low, int64_t high);
  // numbers[k], a finite float.
  double Number(int k, const char* name);
  // The fields of version 1.
  double Number1();          // `number`, a finite float
  double Bound1();           // `number`, 0 or a positive finite float
  double ProjectionBound();  // `proj_clip`, likewise
  double Epsilon();          // positive, finite, normal

  // An array of float numbers, whose shape is the product of `sizes`. Null
  // where it is absent, which fails if it is required.
  const float* Array(int direction, int array, bool is_required,
                     std::initializer_list<int64_t> sizes);
  // A matrix [depth, columns] of the weights of a product, which must be
  // present, of the layer's type of weights. The view has one gate.
  GateMatrices<const float> Matrix(int direction, int array, int64_t depth,
                                   int64_t columns);
  // The numbers of the functions of a cell; null: none.
  const float* FunctionNumbers(bool is_required, int64_t count);
  // An array [directions, size] of initial states; null for zeros.
  const float* InitialState(int k, int64_t directions, int64_t size);
  // The same for a table whose rows are looked up: scales are those of its
  // rows.
  GateMatrices<const float> Table(int array, int64_t rows, int64_t columns);

  uint32_t kind() const { return kind_; }
  uint32_t operand_count() const { return operand_count_; }

 private:
  uint64_t InRange(const char* name, uint64_t value, uint64_t low,
                   uint64_t high);
  template <class T>
  T Take(T* field);
  int64_t Size(const char* name, uint64_t* field, int64_t low, int64_t high);
  void NumberFails(const char* name, double value, const char* wanted);
  // Where an array of the file lies.
  struct Place {
    const char* name;
    int direction;
    uint64_t* offset;
  };
  Place PlaceOf(int direction, int array);
  const char* Bytes(const Place& place, bool is_required,
                    std::initializer_list<int64_t> sizes, uint64_t element,
                    uint64_t before = 0);
  GateMatrices<const float> Typed(int direction, int array, int64_t rows,
                                  int64_t columns, int64_t scales);
  void CheckInt8(const char* name, int direction, uint64_t offset,
                 const GateMatrices<const float>& matrix, int64_t scales,
                 int64_t elements);
  void ArrayFails(const char* name, int direction, uint64_t offset,
                  const char* what);
  double Bound(const char* name, double value);

  const FileView& file_;
  NodeRecord record_;  // fields that were read are zero
  const uint32_t kind_, operand_count_;
  const uint32_t index_;
  Error* const error_;
  bool ok_ = true;
  bool has_matrix_ = false;
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_NODE_READER_H_
