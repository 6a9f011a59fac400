// Signature: the table of an op's arguments, whose shapes are given by a few
// sizes. Shape inference, a kernel's checks and the allocation of its outputs
// read this table.
#ifndef TF_LSTM_OPS_CORE_SIGNATURE_H_
#define TF_LSTM_OPS_CORE_SIGNATURE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "core/inline_vector.h"
#include "core/shape.h"
#include "core/status.h"

namespace tf_lstm_ops {

// One dimension of an argument, in terms of the sizes below.
enum class Extent : uint8_t {
  kTime,
  kBatch,
  kInput,
  kCell,
  kFourCell,       // the four gates
  kInputPlusCell,  // rows of a block cell's weight matrix
  kThree,          // the three peepholes
  kFour,           // one for each gate
  kOne,
  kTwo,        // a GRU's two biases
  kThreeCell,  // the three gates of a GRU
  kHidden,     // the size of h, which a projection may reduce
  kTwoCell,    // h of two layers
  kTwoHidden,  // the same, of layers that may have a projection
  kOpaque,     // not determined by the sizes
};

// T, B, I, H and P; kUnknown while a graph is built.
struct Sizes {
  int64_t time = kUnknown;
  int64_t batch = kUnknown;
  int64_t input = kUnknown;
  int64_t cell = kUnknown;
  int64_t hidden = kUnknown;

  int64_t Value(Extent extent) const;  // kUnknown if not known
};

constexpr int kMaxRank = 3;
constexpr int kAnyRank = -1;

// The dimensions of an argument.
struct Dims {
  template <class... E>
  constexpr Dims(E... extents)  // NOLINT: a list of extents reads best bare
      : rank(sizeof...(E)), extents{extents...} {}
  static constexpr Dims OfAnyRank() {
    Dims dims;
    dims.rank = kAnyRank;
    return dims;
  }
  int rank;
  std::array<Extent, kMaxRank> extents;
};

// An input or output of an op. `type` is a type or an attribute of the op.
struct Argument {
  const char* name;
  Dims dims;
  const char* type = "T";
  // An optional input is absent when it has the shape [0].
  bool optional = false;
  // The input whose shape an output has, if `dims` cannot express the shape.
  const char* like = nullptr;
};

constexpr bool kOptional = true;

struct Signature {
  const char* op;
  std::vector<const char*> attributes;  // as TensorFlow's op builder takes them
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  bool stateful = false;  // equal inputs may give different outputs
  // Trailing arguments that are lists of tensors, such as "weights: n * T". The
  // kernels check them. (Initialised, so that a table may omit them.)
  std::vector<const char*> input_lists = {};   // NOLINT
  std::vector<const char*> output_lists = {};  // NOLINT

  // A dialect may number the inputs of its ops. The position of each input by
  // its number; -1 where the op has no such input.
  std::vector<int> positions = {};  // NOLINT

  // Position of the input of this name, or of this number, or -1. The number
  // takes no time to look up.
  int InputIndex(const char* name) const;
  int InputIndex(int number) const { return positions[number]; }
};

// The number of arguments for which a call allocates no memory.
constexpr size_t kInlineArguments = 24;
using Shapes = InlineVector<Shape, kInlineArguments>;

// Whether an optional input is absent.
bool IsAbsent(const Argument& argument, const Shape& shape);

// Check the rank, or dimension k, of the argument `name`. `what` names the
// expected size in the message. Errors: InvalidArgument where the rank or the
// dimension differs from `want`. Unknown ranks and dimensions pass.
Status CheckRank(const char* name, const Shape& shape, int want);
Status CheckDim(const char* name, const Shape& shape, int k, const char* what,
                int64_t want);

// Checks the ranks and then the dimensions of all inputs, and sets `sizes`.
// Each size comes from the first input that has it. Unknown dimensions pass.
// Errors: InvalidArgument with the argument's name, the expected and the actual
// value, and where a size derived from the inputs overflows.
Status CheckInputs(const Signature& signature, const Shapes& inputs,
                   Sizes* sizes);

// Returns the shape of an output. An opaque or unknown dimension is kUnknown.
Shape OutputShape(const Argument& output, const Sizes& sizes);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_SIGNATURE_H_
