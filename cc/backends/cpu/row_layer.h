// RowLayer: a layer direction whose passes of one row are computed by a loop
// over the steps, ForwardWay::kOneRow.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ROW_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ROW_LAYER_H_

#include <cstdint>

#include "backends/cpu/sizes.h"
#include "backends/cpu/weights/weight_format.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops {

struct RowSteps;

// A layer direction for passes of one row. Arrays that have an element for each
// unit have H' elements, H rounded up to whole vectors, of which those behind
// the units are zero.
struct RowLayer {
  void (*run)(const RowLayer& layer, const RowSteps& row) = nullptr;
  RnnConfig config;   // its cell_size is H'
  int64_t units = 0;  // H
  int vectors = 1;    // of units that a step computes together, at most
  cpu::WeightFormat format = cpu::WeightFormat::kElements;
  RnnWeights<const float> weights;          // the peepholes only
  const float* packed_input = nullptr;      // see PackedLayer
  const float* packed_recurrent = nullptr;  // see PackedLayer
  const float* bias = nullptr;  // sums of the biases, [pre-activations, H']
};

// Steps of one row, forwards in time.
struct RowSteps {
  int64_t steps = 1;
  const float* x = nullptr;  // [steps, I], x_stride apart
  int64_t x_stride = 0;
  float* y = nullptr;  // h of each step, [steps, H], y_stride apart
  int64_t y_stride = 0;
  // The states [H'], which are updated; c is that of an LSTM. They and
  // `scratch` are aligned to 64 bytes.
  float* h = nullptr;
  float* c = nullptr;
  float* scratch = nullptr;  // RowScratch() elements
  // Whether the first step computes the last units first. Steps alternate: what
  // was used last is still in the cache.
  bool reverse = false;
};
using RowFunction = decltype(RowLayer::run);

// Steps whose x W is computed together, in bands of kRows rows.
constexpr int64_t kRowChunk = 2 * kRows;

// Elements of RowSteps::scratch: the next h, z of a chunk, h and x of a chunk
// as the products read them.
inline int64_t RowScratch(const RowLayer& layer) {
  const int64_t rounded =
      cpu::MostFactorFloats(layer.config.hidden_size) +
      kRowChunk * cpu::MostFactorFloats(layer.config.input_size);
  return layer.config.cell_size * (1 + kRowChunk * kMaxPreActivations) +
         (layer.format == cpu::WeightFormat::kElements ? 0 : rounded);
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ROW_LAYER_H_
