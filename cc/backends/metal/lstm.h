// MPSGraph's own LSTM: one layer in one direction over a sequence.
//
// Shapes: T steps, N rows of the batch, I input size, H cell size. The equations are those of
// Apple's documentation of LSTMWithSourceTensor; see docs/reference/mpsgraph.md. Each direction is
// one call, because in some releases of macOS the bidirectional form returns other shapes. The
// caller reverses the steps of a backward direction.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_LSTM_H_
#define TF_LSTM_OPS_BACKENDS_METAL_LSTM_H_

#include "backends/metal/value.h"
#include "core/activation.h"

namespace tf_lstm_ops::metal {

// The arguments. `graph` is not owned. T, N and H are positive.
struct LstmArguments {
  MPSGraph* graph = nil;
  Value source;                 // [T, N, I]; [T, N, 4H] without input_weight
  Value recurrent_weight;       // [4H, H]
  Value input_weight;           // [4H, I], or 0
  Value bias;                   // [4H], or 0
  Value init_state, init_cell;  // [N, H], or 0
  Value mask = 1;               // multipliers of the previous h, [N, H], or 1
  Value peephole;               // [4H], or 0
  bool forget_gate_last = false;
  LstmActivations activations;
};

struct LstmResults {
  Value h, cell;  // [T, N, H]
  Value z_state;  // [T, N, 4H]; 0 unless training. Apple does not say what it
                  // contains. Only LstmGradients reads it.
};

// The gradients with respect to results. 0: none.
struct LstmResultGrads {
  Value h;                    // [T, N, H]
  Value final_h, final_cell;  // [N, H], after the last step
};

// The gradients with respect to the arguments of these names. 0 where the argument is 0.
struct LstmGrads {
  Value source, recurrent_weight, input_weight, bias, peephole;
  Value init_state, init_cell;
};

LstmResults Lstm(const LstmArguments& arguments, bool training);

// `results` are those of Lstm with `training`.
LstmGrads LstmGradients(const LstmArguments& arguments, const LstmResults& results,
                        const LstmResultGrads& result_grads);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_LSTM_H_
