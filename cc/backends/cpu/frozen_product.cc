#include "backends/cpu/frozen_product.h"

#include "backends/cpu/plan/forward_plan.h"
#include "backends/cpu/processor/measured_rates.h"

namespace tf_lstm_ops::cpu {

FrozenProduct::FrozenProduct(const GateMatrices<const float>& weights,
                             const float* bias, int64_t depth,
                             int64_t columns) {
  const Engine& engine =
      FrozenEngine(weights, depth * columns, SelectedInstructionSet().engine);
  const VectorTraits& traits = engine.forward.traits;
  const WeightFormat format = FrozenFormat(weights, depth * columns, traits);
  const int64_t floats =
      engine.pack_product(weights, format, depth, columns, nullptr);
  packed_ = std::make_unique<AlignedBuffer>(floats * sizeof(float));
  auto* packed = static_cast<float*>(packed_->data());
  engine.pack_product(weights, format, depth, columns, packed);
  product_ = {packed, bias, depth, columns, format};
  run_ = engine.run_product;
  rounds_ = IsInt8(format) ||
            (traits.dots_pairs && format == WeightFormat::kBFloat16Pairs);
  row_time_ = Rates().multiply_add / SpeedOf(format, traits) *
              static_cast<double>(depth) *
              static_cast<double>(CeilDiv(columns, traits.lanes));
}

int64_t FrozenProduct::scratch_floats() const {
  return rounds_ ? MostFactorFloats(product_.depth) : 0;
}

}  // namespace tf_lstm_ops::cpu
