// LayerGraph: one layer direction as a part of an MPSGraph graph. This is the
// graph form of core/layer_direction.h, with a Value in place of each pointer.
//
// Shapes: T time steps, B rows of the batch, I input size, H cell size, P
// hidden size, G gates. All sequences are time-major. A step that is not valid
// for a row leaves the row's state as it is: h and cs of such a step repeat
// those of the step before.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_LAYER_GRAPH_H_
#define TF_LSTM_OPS_BACKENDS_METAL_LAYER_GRAPH_H_

#include <array>

#include "backends/metal/saved_activations.h"
#include "backends/metal/value.h"
#include "core/gate_order.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::metal {

// Weights, or the gradients with respect to them. Absent ones are 0.
struct GraphWeights {
  Value input;           // [I, G*H]; 0: see RnnConfig::x_gate_stride
  Value recurrent;       // [P, G*H]
  Value projection;      // [H, P]
  Value input_bias;      // [G*H]
  Value recurrent_bias;  // [G*H]
  std::array<Value, kMaxPreActivations> peephole;  // [H] each, by LstmGate

  bool has_peephole() const { return !peephole[kGateI].is_scalar(); }
};

struct LayerGraph {
  MPSGraph* graph = nil;  // not owned
  RnnConfig config;
  Sequence sequence;  // as GraphSequence returns it
  GraphWeights weights;
  // Dropout multipliers of x and of the previous h: [G, B, .] in the order of
  // the weights' blocks, [1, B, .] for all gates, or 1.
  Value input_dropout = 1;
  Value recurrent_dropout = 1;
  Value valid = 1;  // [T, B, 1], positive where a step is valid for a row, or 1
  Value x;          // [T, B, I]
  Value h0, c0;     // [B, P], [B, H]; 0: zeros
  // The saved activations have the values of the equations in core/, and they
  // may have gradients. Otherwise they may be the opaque z state of MPSGraph's
  // LSTM, which only BuildBackward reads.
  bool exact_activations = false;

  int gates() const { return GateCount(config.cell); }
};

struct LayerGraphOutputs {
  Value h;  // [T, B, P]
  Value final_h, final_c;
  GraphActivations saved;
};

// The gradients with respect to LayerGraphOutputs. Absent ones are 0. Those of
// h and of saved activations count in every step, valid or not.
using LayerGraphOutputGrads = LayerGraphOutputs;

// The gradients with respect to the inputs.
struct LayerGraphGrads {
  Value x, h0, c0;
  GraphWeights weights;
  Value z;  // [T, B, G*H], of the pre-activations that have input weights
};

// The forward pass. Without steps or rows, h is 0.
LayerGraphOutputs BuildForward(const LayerGraph& layer);

// The backward pass. `outputs` are those of BuildForward; co of an LSTM may be
// 0, and h where there is one step only.
LayerGraphGrads BuildBackward(const LayerGraph& layer,
                              const LayerGraphOutputs& outputs,
                              const LayerGraphOutputGrads& output_grads);

// [T, B, 1], positive where a step's output is its h, else the output is zero;
// or 1. `fill` is kZero or kPrevious.
Value HasOutput(const LayerGraph& layer, Fill fill);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_LAYER_GRAPH_H_
