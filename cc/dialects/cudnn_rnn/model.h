// What the attributes and inputs of an op of this dialect ask for, checked.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_MODEL_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/params_layout.h"
#include "core/rnn.h"
#include "core/shape.h"
#include "core/status.h"
#include "dialects/cudnn_rnn/dropout.h"
#include "dialects/cudnn_rnn/signatures.h"
#include "dialects/inputs.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cudnn_rnn {

// What distinguishes the three versions of the ops.
struct Form {
  int version;
  const Signature& (*forward)();
  const Signature& (*backward)();
};

inline constexpr Form kV1 = {1, &CudnnRNN, &CudnnRNNBackprop};
inline constexpr Form kV2 = {2, &CudnnRNNV2, &CudnnRNNBackpropV2};
inline constexpr Form kV3 = {3, &CudnnRNNV3, &CudnnRNNBackpropV3};

enum class InputMode : uint8_t { kLinear, kSkip, kAuto };

struct Attributes {
  CellKind cell = CellKind::kLstm;
  InputMode input_mode = InputMode::kLinear;
  int64_t directions = 1;
  float dropout = 0;  // probability of dropping
  uint64_t seed = 0;  // seed and seed2
  int64_t num_proj = 0;
  bool time_major = true;

  // Those that an op does not have keep their defaults.
  Status Init(const tf::KernelConstruction& construction, bool has_num_proj,
              bool has_time_major);

  // Errors: InvalidArgument for sizes that are not positive, for a projection
  // of anything but an LSTM or to more than num_units, for a skipped input of
  // another size than num_units.
  Status MakeModel(int64_t layers, int64_t num_units, int64_t input_size,
                   RnnModel* model) const;
};

// One call: a model and a batch of sequences.
struct Problem {
  RnnModel model;
  ParamsLayout params;
  bool time_major = true;
  int64_t time = 0;
  int64_t batch = 0;
  std::vector<int64_t> lengths;  // [B]
  int64_t valid_steps = 0;       // their sum, V

  Shape SequenceShape(int64_t width) const;  // [T,B,.] or [B,T,.]
  Shape StateShape(int64_t width) const;     // [L*D,B,.] or [B,L*D,.]
  // Row of state of a pseudo-layer and a batch row.
  int64_t StateRow(int64_t pseudo_layer, int64_t b) const {
    return time_major ? pseudo_layer * batch + b
                      : b * model.pseudo_layers() + pseudo_layer;
  }
};

// A call's problem, from its input, input_h, input_c, params and, where the op
// has them, sequence_lengths, all of which have been fetched.
Status MakeProblem(const Attributes& attributes, const Inputs& call,
                   Problem* problem);

// Of a Backprop op: the shapes of what the forward op returned and of the
// gradients by it.
Status CheckBackprop(const Problem& problem, const Inputs& call);

// Whether inner outputs are dropped, with this probability, at all.
inline bool HasMask(const Problem& problem, float dropout) {
  return dropout > 0 && problem.model.layers > 1;
}

// The dropout of a call, or null where there is none.
inline std::unique_ptr<DropoutMask> MakeMask(const Problem& problem,
                                             float dropout, uint64_t key) {
  if (!HasMask(problem, dropout)) return nullptr;
  return std::make_unique<DropoutMask>(
      key, dropout, problem.time * problem.batch, problem.model.output_size());
}

// The order of the gates in params.
constexpr GateOrder OrderOf(CellKind cell) {
  return cell == CellKind::kLstm  ? kOrderIFCO
         : cell == CellKind::kGru ? kOrderRUN
                                  : kOrderPlain;
}

// A layer of a model, in either direction.
RnnConfig ConfigOf(const RnnModel& model, int64_t layer);

// A pseudo-layer's weights in a buffer of all parameters, or the gradients in
// one of theirs.
template <class T>
RnnWeights<T> WeightsOf(const Problem& problem, int64_t layer,
                        int64_t direction, T* params) {
  const RnnModel& model = problem.model;
  const int64_t p = layer * model.directions + direction;
  const int gates = model.gates();
  const int64_t cell = model.cell_size;
  const auto matrix = [&](int id) {
    return params + problem.params.Matrix(p, id).offset;
  };
  RnnWeights<T> weights;
  if (layer > 0 || !model.skip_input) {
    weights.input = ByUnit(matrix(0), model.InputSize(layer), cell);
  }
  weights.recurrent = ByUnit(matrix(gates), model.hidden_size, cell);
  if (model.projected()) {
    weights.projection = ByUnit(matrix(2 * gates), cell, model.hidden_size);
  }
  weights.input_bias = params + problem.params.Bias(p, 0).offset;
  weights.recurrent_bias = params + problem.params.Bias(p, gates).offset;
  return weights;
}

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_MODEL_H_
