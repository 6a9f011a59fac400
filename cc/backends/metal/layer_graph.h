// LayerGraph: one layer direction as a part of an MPSGraph graph. This is the
// graph form of core/layer_direction.h, with a Value in place of each pointer.
//
// Shapes: T time steps, B rows of the batch, I input size, H cell size, P
// hidden size, G gates. All sequences are time-major. All Values are Float32
// and belong to the graph. In a step that is not valid for a row, h and c
// repeat those of the previous step. The equations are those of core/*_cell.h.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_LAYER_GRAPH_H_
#define TF_LSTM_OPS_BACKENDS_METAL_LAYER_GRAPH_H_

#include <array>

#include "backends/metal/saved_activations.h"
#include "backends/metal/value.h"
#include "core/gate_order.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::metal {

// Weights, or the gradients with respect to them. An absent tensor is 0.
struct GraphWeights {
  Value input;           // [I, G*H]; 0: see RnnConfig::x_gate_stride
  Value recurrent;       // [P, G*H]
  Value projection;      // [H, P]
  Value input_bias;      // [G*H]
  Value recurrent_bias;  // [G*H]
  // [H] each, indexed by LstmGate.
  std::array<Value, kMaxPreActivations> peephole;

  bool has_peephole() const { return !peephole[kGateI].is_scalar(); }
};

// What both passes read.
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
  // If true, the saved activations have the values of the equations in core/,
  // and there may be gradients with respect to them. If false, they may be the
  // opaque z state of MPSGraph's LSTM, which only BuildBackward reads.
  bool exact_activations = false;
  // Whether the activations are saved. If not, MPSGraph keeps no z state.
  bool training = true;

  int gates() const { return GateCount(config.cell); }
};

struct LayerGraphOutputs {
  Value h;  // [T, B, P]
  Value final_h, final_c;
  GraphActivations saved;
};

// The gradients with respect to LayerGraphOutputs. An absent tensor is 0. The
// gradients with respect to h and to saved activations are used in every step,
// also in steps that are not valid.
using LayerGraphOutputGrads = LayerGraphOutputs;

// The gradients with respect to the inputs, which have the shapes of the
// inputs.
struct LayerGraphGrads {
  Value x, h0, c0;
  GraphWeights weights;
  Value z;  // [T, B, G*H], of the pre-activations that have input weights
};

// Adds the forward pass to the graph. If there are no steps or no rows, h is 0.
LayerGraphOutputs BuildForward(const LayerGraph& layer);

// Adds the backward pass to the graph. `outputs` are those of BuildForward. co
// of an LSTM may be 0. h may be 0 if there is only one step.
LayerGraphGrads BuildBackward(const LayerGraph& layer,
                              const LayerGraphOutputs& outputs,
                              const LayerGraphOutputGrads& output_grads);

// Returns [T, B, 1]: positive where the output of a step is its h. In the other
// steps the output is zero. Returns 1 if the output is h in all steps. `fill`
// is kZero or kPrevious.
Value HasOutput(const LayerGraph& layer, Fill fill);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_LAYER_GRAPH_H_
