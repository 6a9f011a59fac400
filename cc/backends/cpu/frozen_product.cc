#include "backends/cpu/frozen_product.h"

#include "backends/cpu/plan/cost.h"

namespace tf_lstm_ops::cpu {

FrozenProduct::FrozenProduct(const float* weights, const float* bias,
                             int64_t depth, int64_t columns) {
  const Engine& engine = *SelectedInstructionSet().engine;
  const int64_t floats = engine.pack_product(weights, depth, columns, nullptr);
  packed_ = std::make_unique<AlignedBuffer>(floats * sizeof(float));
  auto* packed = static_cast<float*>(packed_->data());
  engine.pack_product(weights, depth, columns, packed);
  product_ = {packed, bias, depth, columns};
}

double FrozenProduct::row_time() const {
  const int64_t lanes = SelectedInstructionSet().engine->forward.traits.lanes;
  const auto vectors = static_cast<double>(CeilDiv(product_.columns, lanes));
  return Rates().multiply_add * static_cast<double>(product_.depth) * vectors;
}

}  // namespace tf_lstm_ops::cpu
