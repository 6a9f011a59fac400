#include "backends/cpu/frozen_product.h"

#include "backends/cpu/plan/cost.h"
#include "backends/cpu/plan/forward_schedule.h"
#include "backends/cpu/team/thread_team.h"

namespace tf_lstm_ops::cpu {
namespace {

constexpr int64_t kRowsOfItem = ForwardSchedule::kBandRows;

}  // namespace

FrozenProduct::FrozenProduct(const float* weights, const float* bias,
                             int64_t depth, int64_t columns) {
  const Engine& engine = *SelectedInstructionSet().engine;
  const int64_t floats = engine.pack_product(weights, depth, columns, nullptr);
  packed_ = std::make_unique<AlignedBuffer>(floats * sizeof(float));
  auto* packed = static_cast<float*>(packed_->data());
  engine.pack_product(weights, depth, columns, packed);
  product_ = {packed, bias, depth, columns};
}

void FrozenProduct::Run(const float* x, int64_t rows, float* y,
                        int threads) const {
  const Engine& engine = *SelectedInstructionSet().engine;
  const Rates rates;
  const int64_t items = CeilDiv(rows, kRowsOfItem);
  const double time = static_cast<double>(rows * product_.depth) *
                      static_cast<double>(CeilDiv(
                          product_.columns, engine.forward.traits.lanes)) *
                      rates.multiply_add;
  RunItems(items, ThreadsOfPhase(rates, time, items, threads),
           [&](int64_t item, int) {
             const int64_t first = item * kRowsOfItem;
             engine.run_product(product_, x + first * product_.depth,
                                Min(kRowsOfItem, rows - first),
                                y + first * product_.columns);
           });
}

}  // namespace tf_lstm_ops::cpu
