#include "backends/cpu/frozen_layer.h"

#include <optional>
#include <vector>

#include "backends/cpu/caches.h"
#include "backends/cpu/engine_arguments.h"
#include "backends/cpu/kept_weights.h"

namespace tf_lstm_ops::cpu {

struct FrozenLayer::Packed {
  std::shared_ptr<PackedWeights> weights = std::make_shared<PackedWeights>();
  // Of passes of one row; the function is null where they do not serve the
  // layer.
  RowFunction row_function = nullptr;
  RowLayer row;
  std::unique_ptr<AlignedBuffer> row_arrays;
};

FrozenLayer::FrozenLayer(const RnnConfig& config,
                         const RnnWeights<const float>& weights)
    : config_(config), weights_(weights), packed_(std::make_unique<Packed>()) {
  // The first pass, a step of zeros, packs the weights.
  const Engine& engine = *SelectedInstructionSet().engine;
  std::vector<float> x(config.input_size), h(config.hidden_size);
  std::vector<float> h0(config.hidden_size), c0(config.cell_size);
  LayerForward<float> step;
  step.config = config;
  step.weights = weights;
  step.sequence.batch = step.sequence.time = step.sequence.steps = 1;
  step.x = x.data();
  step.x_stride = config.input_size;
  step.h0 = {h0.data(), config.hidden_size};
  step.c0 = {c0.data(), config.cell_size};
  step.h = h.data();
  step.h_stride = config.hidden_size;
  const PackedSequence valid(step.sequence);
  const ForwardArguments<float> arguments(step, valid);
  PackedWeights* packed = packed_->weights.get();
  {
    PackedWeightsUse use(packed_->weights);
    engine.forward(&arguments.engine(), 1, 1, &packed, nullptr);
    use.Filled();
  }
  RowLayer* row = &packed_->row;
  const int64_t floats =
      engine.make_row_layer(arguments.engine(), packed, nullptr, row);
  if (floats == 0) return;
  packed_->row_arrays = std::make_unique<AlignedBuffer>(floats * sizeof(float));
  engine.make_row_layer(arguments.engine(), packed,
                        static_cast<float*>(packed_->row_arrays->data()), row);
  packed_->row_function = engine.row_function(config.cell);
}
FrozenLayer::~FrozenLayer() = default;

void FrozenLayer::Run(const FrozenLayer* const* layers,
                      LayerForward<float>* passes, const PackedSequence* valid,
                      int count, int threads, CallMemory* memory) {
  std::optional<ForwardArguments<float>> arguments[kMaxTogether];
  EngineForward<float> engines[kMaxTogether];
  PackedWeights* packed[kMaxTogether] = {};
  for (int k = 0; k < count; ++k) {
    passes[k].config = layers[k]->config_;
    passes[k].weights = layers[k]->weights_;
    engines[k] = arguments[k].emplace(passes[k], valid[k]).engine();
    packed[k] = layers[k]->packed_->weights.get();
  }
  SelectedInstructionSet().engine->forward(engines, count, threads, packed,
                                           memory);
  for (const auto& one : arguments) {
    if (one) one->Finish();
  }
}

bool FrozenLayer::PrefersRow(int threads) const {
  if (!packed_->row_function) return false;
  // Two threads have two L2 caches, but a call must wake one of them.
  return threads == 1 ||
         packed_->weights->bytes() <= static_cast<size_t>(TheCaches().l2);
}

int64_t FrozenLayer::row_floats() const {
  return packed_->row.config.cell_size;
}

int64_t FrozenLayer::row_scratch() const {
  return SelectedInstructionSet().engine->row_scratch(packed_->row);
}

void FrozenLayer::RunRow(const RowSteps& row) const {
  packed_->row_function(packed_->row, row);
}

}  // namespace tf_lstm_ops::cpu
