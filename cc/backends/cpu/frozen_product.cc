#include "backends/cpu/frozen_product.h"

#include "backends/cpu/plan/forward_plan.h"

namespace tf_lstm_ops::cpu {

FrozenProduct::FrozenProduct(const GateMatrices<const float>& weights,
                             const float* bias, int64_t depth,
                             int64_t columns) {
  const Engine& engine = *SelectedInstructionSet().engine;
  const WeightFormat format =
      FrozenFormat(weights, depth * columns, engine.forward.traits);
  const int64_t floats =
      engine.pack_product(weights, format, depth, columns, nullptr);
  packed_ = std::make_unique<AlignedBuffer>(floats * sizeof(float));
  auto* packed = static_cast<float*>(packed_->data());
  engine.pack_product(weights, format, depth, columns, packed);
  product_ = {packed, bias, depth, columns, format};
}

int64_t FrozenProduct::scratch_floats() const {
  const bool rounds = product_.format != WeightFormat::kElements &&
                      product_.format != WeightFormat::kBFloat16Pairs;
  return rounds ? MostFactorFloats(product_.depth) : 0;
}

double FrozenProduct::row_time() const {
  const VectorTraits& traits = SelectedInstructionSet().engine->forward.traits;
  const auto vectors =
      static_cast<double>(CeilDiv(product_.columns, traits.lanes));
  return Rates().multiply_add / SpeedOf(product_.format, traits) *
         static_cast<double>(product_.depth) * vectors;
}

}  // namespace tf_lstm_ops::cpu
