// One direction of MPSGraph's LSTM, forward and backward.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_DIRECTION_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_DIRECTION_H_

#include <array>
#include <cstdint>

#include "array.h"
#include "lstm.h"

namespace fake {

struct LstmSizes {
  int64_t time, rows, inputs, units, directions;
};

// The arguments of one direction. Absent ones are zero, an absent mask one.
struct Direction {
  Array source;                       // [T, N, I] or [T, N, 4H]
  Array recurrent_weight;             // [4H, H]
  Array input_weight;                 // [4H, I]
  Array bias, peephole;               // [4H]
  Array init_state, init_cell, mask;  // [N, H]
  bool is_backwards;
  bool has_input_weight, has_peephole;
  std::array<Activation, 4> gates;  // by block of the weights
  Activation activation;
  int input, forget, cell, output;  // the block of each gate
};

struct DirectionResults {
  Array output, cell, z_state;  // of all steps
};

// Of the forward pass, and the gradients with respect to its results.
struct DirectionSaved {
  Array output_grad, z_state, cell;  // of all steps
  Array final_state_grad, final_cell_grad;
};

struct DirectionGrads {
  Array source, recurrent_weight, input_weight, bias, peephole;
  Array init_state, init_cell;
};

DirectionResults RunDirection(const Direction& direction,
                              const LstmSizes& sizes);
DirectionGrads RunDirectionBackward(const Direction& direction,
                                    const LstmSizes& sizes,
                                    const DirectionSaved& saved);

Array ZerosOf(const Shape& shape);
void Accumulate(Array* sum, const Array& terms);

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_LSTM_DIRECTION_H_
