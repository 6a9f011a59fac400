#include "backends/cpu/frozen_layer.h"

#include <vector>

#include "backends/cpu/layer.h"

namespace tf_lstm_ops::cpu {

void* CallMemory::Get(size_t bytes) {
  if (bytes > bytes_) {
    buffer_ = std::make_unique<AlignedBuffer>(bytes);
    bytes_ = bytes;
  }
  return buffer_ ? buffer_->data() : nullptr;
}

struct FrozenLayer::Packed {};

FrozenLayer::FrozenLayer(const RnnConfig& config,
                         const RnnWeights<const float>& weights)
    : config_(config),
      weights_(weights),
      packed_(std::make_unique<Packed>()) {}
FrozenLayer::~FrozenLayer() = default;

void FrozenLayer::Run(const FrozenLayer* const* layers,
                      LayerForward<float>* passes, const PackedSequence* valid,
                      int count, int threads, CallMemory* /*memory*/) {
  std::vector<LayerForward<float>> all;
  PackedSequences steps;
  for (int k = 0; k < count; ++k) {
    passes[k].config = layers[k]->config_;
    passes[k].weights = layers[k]->weights_;
    all.push_back(passes[k]);
    steps.push_back(valid[k]);
  }
  ComputeForward(all, steps, threads);
}

bool FrozenLayer::has_row_path() const { return false; }
int64_t FrozenLayer::row_floats() const { return config_.cell_size; }
int64_t FrozenLayer::row_scratch() const { return 0; }
void FrozenLayer::RunRow(const RowSteps& /*row*/) const {}

}  // namespace tf_lstm_ops::cpu
