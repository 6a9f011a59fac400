// Checks the attributes and inputs of an op of this dialect and translates them
// into a MultiLayerRnn.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_PROBLEM_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "core/attribute_reader.h"
#include "core/multi_layer_rnn.h"
#include "core/status.h"
#include "dialects/common/shape_of.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {

// The op variants: versions 1 to 3.
struct OpVariant {
  int version;
  const Signature& (*forward)();
  const Signature& (*backward)();
};

inline constexpr OpVariant kV1 = {1, &CudnnRNN, &CudnnRNNBackprop};
inline constexpr OpVariant kV2 = {2, &CudnnRNNV2, &CudnnRNNBackpropV2};
inline constexpr OpVariant kV3 = {3, &CudnnRNNV3, &CudnnRNNBackpropV3};

// kAuto means kSkip where input_size equals num_units, else kLinear.
enum class InputMode : uint8_t { kLinear, kSkip, kAuto };

struct Attributes {
  CellKind cell = CellKind::kLstm;
  InputMode input_mode = InputMode::kLinear;
  int64_t directions = 1;
  float dropout = 0;  // probability of dropping
  uint64_t seed = 0;  // seed << 32 | seed2
  int64_t num_proj = 0;
  bool time_major = true;

  // Reads the attributes. An attribute that the op does not have keeps its
  // default. Errors: InvalidArgument for a value out of range; those of
  // GetAttr.
  Status Init(const AttributeReader& attributes, bool has_num_proj,
              bool has_time_major);

  // Sets `model`. Errors: InvalidArgument where a size is not positive, where
  // there is a projection without an LSTM or one larger than num_units, and
  // where input_mode is skip_input and input_size is not num_units.
  Status MakeModel(int64_t layers, int64_t num_units, int64_t input_size,
                   RnnModel* model) const;
};

// Refuses a GRU under TensorFlow's own op name, because its gate order is
// ambiguous without CUDA: stock keras.layers.GRU passes cuDNN's order if
// TensorFlow was built with CUDA, and Keras' own order if not. A kernel cannot
// tell the two apart. Error: InvalidArgument, which says what to use instead.
Status RefuseStockGru(CellKind cell);

// Checks the shapes of input, input_h, input_c, params and, where the op has
// it, sequence_lengths. Sets `problem`. `lengths` [B] has the elements of
// sequence_lengths in host memory; null means that all rows have full length.
// Errors: InvalidArgument.
Status MakeProblem(const Attributes& attributes, const ShapeOf& shape_of,
                   const int32_t* lengths, MultiLayerRnn* problem);

// Checks the shapes of a Backprop op's further inputs: the forward op's results
// and the gradients with respect to them. Errors: InvalidArgument.
Status CheckBackprop(const MultiLayerRnn& problem, const ShapeOf& shape_of);

// Returns the shapes of a forward op's outputs, in order, without
// host_reserved. `reserve_size` is in elements. In inference the reserve is a
// scalar.
std::vector<Shape> ForwardShapes(const MultiLayerRnn& problem, bool is_training,
                                 int64_t reserve_size);
// Checks that a Backprop op's reserve_space has `want` elements. The CPU
// kernels check more (core/reserve.h). Errors: InvalidArgument.
Status CheckReserveSize(const Shape& reserve_space, int64_t want);

// Returns the shape of host_reserved, of type int8, which versions 2 and 3
// have.
Shape HostReservedShape(const OpVariant& variant, bool is_training);

// Sets the inputs that both passes share. `call` has In as CpuCall has. Tensors
// is MultiLayerForward or MultiLayerBackward.
template <class Call, class Tensors>
void SetInputs(const MultiLayerRnn& problem, Call* call, Tensors* t) {
  t->input = call->In("input");
  t->input_h = call->In("input_h");
  if (IsLstm(problem.model.cell)) t->input_c = call->In("input_c");
  t->params = call->In("params");
}

// Sets the outputs of a forward op, except the reserve. `call` has Out as
// CpuCall has.
template <class T, class Call>
void SetOutputs(const MultiLayerRnn& problem, Call* call,
                MultiLayerForward<T>* t) {
  t->output = call->Out(0);
  t->output_h = call->Out(1);
  if (IsLstm(problem.model.cell)) t->output_c = call->Out(2);
}

// Sets the other inputs of a Backprop op, except the reserve, and its outputs.
// `call` has In and Out as CpuCall has.
template <class T, class Call>
void SetGrads(const MultiLayerRnn& problem, Call* call,
              MultiLayerBackward<T>* t) {
  t->output = call->In("output");
  t->output_backprop = call->In("output_backprop");
  t->output_h_backprop = call->In("output_h_backprop");
  t->input_backprop = call->Out(0);
  t->input_h_backprop = call->Out(1);
  if (IsLstm(problem.model.cell)) {
    t->output_c_backprop = call->In("output_c_backprop");
    t->input_c_backprop = call->Out(2);
  }
  t->params_backprop = call->Out(3);
}

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_PROBLEM_H_
