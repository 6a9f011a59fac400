// A recurrent layer in one direction as a part of a graph, forward and
// backward: what backends/cpu/layer.h is for the CPU.
//
// Sequences are time-major. A step in which a row does not take part, by
// `valid`, leaves its state alone; h and cs of all steps are the states after
// them, so those of such a step repeat the ones before it.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_RNN_H_
#define TF_LSTM_OPS_BACKENDS_METAL_RNN_H_

#include <array>

#include "backends/metal/value.h"
#include "core/gate_order.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::metal {

// Weights, or the gradients with respect to them; 0 where there are none. G is
// the number of gates.
struct Weights {
  Value input;           // [I, G*H]; 0: x itself is added
  Value recurrent;       // [P, G*H]
  Value projection;      // [H, P]
  Value input_bias;      // [G*H]
  Value recurrent_bias;  // [G*H]
  std::array<Value, kMaxPreActivations> peephole;  // [H], by part

  bool has_peephole() const { return !peephole[kGateI].is_number(); }
};

struct Layer {
  MPSGraph* graph = nil;
  RnnConfig config;
  int64_t time = 0;
  int64_t batch = 0;
  bool reversed = false;
  Weights weights;
  // Multipliers of the input and of the previous output, for each gate in the
  // order of the weights, or one for all: [G,B,.] or [1,B,.], or 1.
  Value input_dropout = 1;
  Value recurrent_dropout = 1;
  Value valid = 1;  // [T,B,1], positive where a row takes part in a step
  Value x;          // [T,B,I]; without input weights as RnnConfig says
  Value h0, c0;     // [B,P], [B,H]
  // Whether steps hold what core's equations say, and may have gradients. Else
  // they may be what MPSGraph's own LSTM keeps, which is fit for Backward
  // alone.
  bool exact_steps = false;

  int gates() const { return GateCount(config.cell); }
};

// What a step keeps for the backward pass, [T,B,H] each, numbered as the cell's
// equations say (LstmSaved, GruSaved).
using StepValues = std::array<Value, kMaxSavedActivations>;

struct LayerOutputs {
  Value h;  // [T,B,P]
  Value final_h, final_c;
  StepValues steps;
};

LayerOutputs Forward(const Layer& layer);

// Gradients with respect to LayerOutputs; 0 where there are none. Those of h
// and of steps count in every step, whether a row takes part in it or not.
using LayerUpstream = LayerOutputs;

struct LayerGradients {
  Value x, h0, c0;
  Weights weights;
  Value dz;  // [T,B,G*H], of the pre-activations from the input
};

// `outputs` are those of Forward; an LSTM's co may be left out, as may h where
// there is a single step.
LayerGradients Backward(const Layer& layer, const LayerOutputs& outputs,
                        const LayerUpstream& upstream);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_RNN_H_
