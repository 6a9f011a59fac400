// ForwardProblem: what the plan of a forward pass depends on.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_PROBLEM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_PROBLEM_H_

#include "backends/cpu/plan/cost.h"
#include "backends/cpu/plan/vector_traits.h"
#include "backends/cpu/sizes.h"
#include "backends/cpu/weights/weight_format.h"
#include "core/cell_shape.h"
#include "core/float16.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cpu {

// Where the packed weights of a pass are.
enum class WeightsState {
  kOfCall,  // the call packs them for itself, or reads the weights in place
  kEmpty,   // the call packs them into memory that is kept
  kFilled,  // they have been packed before
};

// One layer direction. Sizes are in elements.
struct ForwardProblem {
  ForwardProblem() = default;
  ForwardProblem(const RnnConfig& config, const VectorTraits& traits)
      : config(config),
        shape(CellShapeOf(config.cell)),
        traits(traits),
        vectors(CeilDiv(config.cell_size, traits.lanes)) {}

  RnnConfig config;
  CellShape shape;  // of config.cell
  VectorTraits traits;
  int64_t vectors = 0;                            // of H units
  WeightFormat format = WeightFormat::kElements;  // of packed weights
  WeightsState weights = WeightsState::kOfCall;
  // Rows of the batch, the steps, and the packed rows.
  int64_t batch = 0, steps = 0, rows = 0;
  bool all_valid = true;
  bool has_input = true;      // input weights
  bool units_in_rows = true;  // each row of the weights has units side by side
  bool drops = false;         // dropout of x or h
  bool saves = false;         // activations
  int together = 1;           // layer directions that run side by side
  Caches caches = TheCaches();
  Rates rates = {};

  // Whether a step has a second product, that of m.
  bool multiplies_m() const {
    return config.projected() || shape.resets_before;
  }
  // H rounded up to whole vectors.
  int64_t units() const { return vectors * traits.lanes; }
  int64_t input() const { return has_input ? config.input_size : 0; }
  int64_t z_bytes() const {
    return shape.z_parts() * units() * traits.element_bytes;
  }
  // Of a packed weight.
  int64_t weight_bytes() const {
    switch (format) {
      case WeightFormat::kElements:
        return traits.element_bytes;
      case WeightFormat::kBFloat16Pairs:
        return sizeof(BFloat16);
      case WeightFormat::kInt8Quads:
      case WeightFormat::kInt8FusedQuads:
        return 1;
    }
    return 1;
  }
  int64_t vector_bytes() const { return traits.lanes * weight_bytes(); }
  // Vectors of units of all directions that run side by side.
  int64_t all_vectors() const { return together * vectors; }
  // The products of rows with the weights of one vector of units.
  ProductSize InputProduct(int64_t count) const {
    return {count, input(), shape.input, vector_bytes()};
  }
  ProductSize RecurrentProduct(int64_t count) const {
    return {count, config.hidden_size, shape.recurrent, vector_bytes()};
  }
  ProductSize SecondProduct(int64_t count) const {
    return {count, multiplies_m() ? units() : 0, 1, vector_bytes()};
  }
  // Of packed W and R.
  int64_t packed_bytes() const {
    return units() * weight_bytes() *
           (shape.input * input() + shape.recurrent * config.hidden_size);
  }
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_FORWARD_PROBLEM_H_
