// The block-cell ops: op variants, attributes, checks, and the mapping from an
// op's tensors to a layer direction. All devices use it.
#ifndef TF_LSTM_OPS_DIALECTS_BLOCK_CELL_PROBLEM_H_
#define TF_LSTM_OPS_DIALECTS_BLOCK_CELL_PROBLEM_H_

#include <array>
#include <string>

#include "core/attribute_reader.h"
#include "core/gate_order.h"
#include "core/layer_direction.h"
#include "core/lstm_cell.h"
#include "core/status.h"
#include "dialects/block_cell/signatures.h"

namespace tf_lstm_ops::block_cell {

// What distinguishes the ops of the dialect.
struct OpVariant {
  const Signature& (*signature)();
  bool sequence = false;  // [T, B, .], else one step [B, .]
  GateOrder order = kOrderICFO;
  bool is_forward = false;
  bool has_forget_bias = false;
  // A gradient op that takes the gradients of all outputs. Its gate order is an
  // attribute.
  bool from_all_outputs = false;
};

inline constexpr OpVariant kCell = {&LSTMBlockCell, false, kOrderICFO, true,
                                    true};
inline constexpr OpVariant kBlock = {&BlockLSTM, true, kOrderICFO, true, true};
inline constexpr OpVariant kBlockV2 = {&BlockLSTMV2, true, kOrderIFCO, true};
inline constexpr OpVariant kCellGrad = {&LSTMBlockCellGrad};
inline constexpr OpVariant kBlockGrad = {&BlockLSTMGrad, true};
inline constexpr OpVariant kBlockGradV2 = {&BlockLSTMGradV2, true, kOrderIFCO};
inline constexpr OpVariant kCellFullGrad = {
    &LSTMBlockCellFullGrad, false, kOrderICFO, false, false, true};
inline constexpr OpVariant kBlockFullGrad = {
    &BlockLSTMFullGrad, true, kOrderICFO, false, false, true};

// The attributes of an op. Attributes that it does not have keep the defaults.
struct Attributes {
  GateOrder order = kOrderICFO;
  float forget_bias = 0;
  float cell_clip = 0;
  bool use_peephole = false;

  // Reads the attributes. Errors: those of GetAttr.
  Status Init(const AttributeReader& reader, const OpVariant& variant) {
    order = variant.order;
    if (variant.has_forget_bias) {
      TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("forget_bias", &forget_bias));
    }
    if (variant.is_forward) {
      TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("cell_clip", &cell_clip));
    }
    if (variant.from_all_outputs) {
      std::string name;
      TF_LSTM_OPS_RETURN_IF_ERROR(reader.GetAttr("gate_order", &name));
      order = name == "IFCO" ? kOrderIFCO : kOrderICFO;
    }
    return reader.GetAttr("use_peephole", &use_peephole);
  }
};

// Error: InvalidArgument unless 0 <= steps <= time.
inline Status CheckSeqLenMax(int64_t steps, int64_t time) {
  if (steps >= 0 && steps <= time) return Status();
  return InvalidArgument("seq_len_max must be between 0 and ", time, " but is ",
                         steps);
}

// The sequence of a call, time-major: the first `steps` of `time` time steps.
inline Sequence MakeSequence(int64_t batch, int64_t time, int64_t steps) {
  Sequence sequence;
  sequence.batch = batch;
  sequence.time = time;
  sequence.steps = steps;
  return sequence;
}

// The forward outputs other than h, by LstmSaved. They are outputs 0 to 5 of a
// forward op; h is output 6.
constexpr std::array<const char*, kMaxSavedActivations> kSavedNames = {
    "i", "cs", "f", "o", "ci", "co"};
constexpr size_t kOutputH = kSavedNames.size();

// The gates that have peepholes, in the order of the arguments.
struct Peephole {
  const char* name;
  InputNumber input;
  LstmGate gate;
};
constexpr std::array<Peephole, 3> kPeepholes = {
    Peephole{"wci", kInWci, kGateI}, Peephole{"wcf", kInWcf, kGateF},
    Peephole{"wco", kInWco, kGateO}};

constexpr int kGates = GateCount(CellKind::kLstm);

// Sets the views of w [I + H, 4H] or of its gradient. It has the rows of x,
// then the rows of h.
template <class T>
void SetMatrices(const Sizes& sizes, T* w, RnnWeights<T>* weights) {
  weights->input = ByInput(w, kGates, sizes.cell);
  weights->recurrent =
      ByInput(w + sizes.input * kGates * sizes.cell, kGates, sizes.cell);
}

inline RnnConfig MakeConfig(const Attributes& attributes, const Sizes& sizes) {
  RnnConfig config;
  config.input_size = sizes.input;
  config.cell_size = config.hidden_size = sizes.cell;
  config.gate_order = attributes.order;
  config.forget_bias = attributes.forget_bias;
  config.cell_clip = attributes.cell_clip;
  return config;
}

// Fills a layer direction from the inputs of `call`, which has In and Weights
// as CpuCall has.
template <class T, class Call>
void SetLayer(const Attributes& attributes, const Sequence& sequence,
              const Sizes& sizes, Call* call, LayerDirection<T>* layer) {
  const int64_t cell = sizes.cell, input = sizes.input;
  const int64_t row = kGates * cell;
  layer->config = MakeConfig(attributes, sizes);
  layer->sequence = sequence;
  layer->x = call->In(kInX, sequence.rows() * input);
  layer->x_stride = input;
  layer->h0 = {call->In(kInHPrev), cell};
  layer->c0 = {call->In(kInCsPrev), cell};
  const auto by_input = [&](const auto* data) {
    return ByInput(data, kGates, cell);
  };
  layer->weights.input = call->Weights(kInW, 0, input * row, by_input);
  layer->weights.recurrent =
      call->Weights(kInW, input * row, cell * row, by_input);
  layer->weights.input_bias = call->In(kInB);
  if (!attributes.use_peephole) return;
  for (const Peephole& peephole : kPeepholes) {
    layer->weights.peephole[peephole.gate] = call->In(peephole.input);
  }
}

// Fills the forward outputs, and the gradients with respect to them, from the
// inputs of a gradient op. Gradients that the op does not have stay null.
// `rows` is T * B of the steps to compute.
template <class T, class Call>
void SetOutputsAndGrads(const Sizes& sizes, int64_t rows, Call* call,
                        LayerBackward<T>* layer) {
  const int64_t cell = sizes.cell, size = rows * cell;
  for (int k = 0; k < kMaxSavedActivations; ++k) {
    layer->saved.Set(k, call->SavedIn(kInI + k, size), cell);
    layer->saved_grad.Set(k, call->In(kInIGrad + k, size), cell);
  }
  layer->h = call->In(kInH, size);
  layer->h_grad = call->In(kInHGrad, size);
  layer->h_stride = layer->h_grad_stride = cell;
}

}  // namespace tf_lstm_ops::block_cell

#endif  // TF_LSTM_OPS_DIALECTS_BLOCK_CELL_PROBLEM_H_
