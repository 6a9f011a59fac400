// FrozenLayer: a layer direction whose weights do not change. They are packed
// once, and calls neither allocate memory nor look weights up.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FROZEN_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FROZEN_LAYER_H_

#include <cstdint>
#include <memory>

#include "backends/cpu/call_memory.h"
#include "backends/cpu/engine.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

class FrozenLayer {
 public:
  // Packs the weights. Their arrays must outlive the object. Throws
  // std::bad_alloc.
  FrozenLayer(const RnnConfig& config, const RnnWeights<const float>& weights);
  ~FrozenLayer();
  FrozenLayer(const FrozenLayer&) = delete;
  FrozenLayer& operator=(const FrozenLayer&) = delete;

  const RnnConfig& config() const { return config_; }

  // Computes the passes of `count` layers, 1 or kMaxTogether, as ComputeForward
  // does. The members config and weights of passes[k] are set to those of
  // layers[k]; nothing is saved. States must be given and contiguous: h0 and,
  // of an LSTM, c0. Thread-safe, with a `memory` for each thread. Once the
  // memory is large enough, a call allocates nothing; with one thread it takes
  // no lock. Throws std::bad_alloc.
  static void Run(const FrozenLayer* const* layers, LayerForward<float>* passes,
                  const PackedSequence* valid, int count, int threads,
                  CallMemory* memory);

  // Whether RunRow serves the layer, and is not slower than Run with so many
  // threads for a step.
  bool PrefersRow(int threads) const;
  int64_t row_floats() const;
  int64_t row_scratch() const;
  // Computes steps of one row on the calling thread. The states have
  // row_floats() elements; those behind P and H are undefined. The scratch
  // memory has row_scratch() floats. The bits are those of Run. It
  // allocates nothing, takes no lock and makes no system call.
  void RunRow(const RowSteps& row) const;

 private:
  struct Packed;
  const RnnConfig config_;
  const RnnWeights<const float> weights_;
  const std::unique_ptr<Packed> packed_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FROZEN_LAYER_H_
