// FrozenLayer: a layer direction whose weights do not change. They are packed
// once, and calls neither allocate memory nor look weights up.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FROZEN_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FROZEN_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/cpu/aligned_buffer.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

// Memory that a caller keeps between calls. It grows to the largest size that
// was asked for. One thread at a time may use it.
class CallMemory {
 public:
  // Returns uninitialised memory of at least `bytes`, aligned to 64 bytes. It
  // is valid until the next call. Throws std::bad_alloc.
  void* Get(size_t bytes);

 private:
  size_t bytes_ = 0;
  std::unique_ptr<AlignedBuffer> buffer_;
};

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
  // memory is large enough, a call without masked steps allocates nothing; with
  // one thread it takes no lock. Throws std::bad_alloc.
  static void Run(const FrozenLayer* const* layers, LayerForward<float>* passes,
                  const PackedSequence* valid, int count, int threads,
                  CallMemory* memory);

  // Steps of one row, forwards in time.
  struct RowSteps {
    int64_t steps;
    const float* x;  // [steps, I], x_stride apart
    int64_t x_stride;
    float* y;  // h of each step, [steps, P], y_stride apart
    int64_t y_stride;
    // The states, which are updated: h [P] and, of an LSTM, c [H]. Aligned to
    // 64 bytes and followed by memory up to row_floats() in total.
    float* h;
    float* c;
    float* scratch;  // row_scratch() floats, aligned to 64 bytes
  };
  // Whether RunRow serves the layer.
  bool has_row_path() const;
  int64_t row_floats() const;
  int64_t row_scratch() const;
  // Computes the steps on the calling thread. The bits are those of Run. It
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
