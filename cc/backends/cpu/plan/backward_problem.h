// BackwardProblem: what the plan of a backward pass depends on.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_PROBLEM_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_PROBLEM_H_

#include "backends/cpu/plan/cost.h"
#include "backends/cpu/plan/vector_traits.h"
#include "backends/cpu/sizes.h"
#include "core/cell_shape.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cpu {

// One layer direction. Sizes are in elements.
struct BackwardProblem {
  BackwardProblem() = default;
  BackwardProblem(const RnnConfig& config, const VectorTraits& traits)
      : config(config),
        shape(CellShapeOf(config.cell)),
        traits(traits),
        vectors(CeilDiv(config.cell_size, traits.lanes)) {}

  RnnConfig config;
  CellShape shape;  // of config.cell
  VectorTraits traits;
  int64_t vectors = 0;  // of H units
  // Of both factors of products.
  WeightFormat format = WeightFormat::kElements;
  // Rows of the batch, the steps, and the packed rows.
  int64_t batch = 0, steps = 0, rows = 0;
  bool has_input = true;      // input weights
  bool wants_h0_grad = true;  // the gradient of the first step's previous h
  // Whether the call has what ComputeBackward of LSTMBlockCellGrad has: one
  // step of all rows, whose activations are saved by row, and no gradient of
  // final states. It wants dz, and nothing that takes a product or a sum other
  // than those of the peepholes.
  bool wants_z_grad_only = false;
  int together = 1;  // layer directions that run side by side
  Caches caches = TheCaches();
  Rates rates = {};

  // Whether a step has a second product, that of m.
  bool multiplies_m() const {
    return config.projected() || shape.resets_before;
  }
  // Whether the gradient of any step's previous h is needed.
  bool needs_h_grad() const { return steps > 1 || wants_h0_grad; }
  // Whether a step has a product.
  bool multiplies() const { return needs_h_grad() || multiplies_m(); }
  // Whether the cell's equations are a phase of their own.
  bool has_two_phases() const { return multiplies_m() || shape.reduces_rows; }
  // H rounded up to whole vectors.
  int64_t units() const { return vectors * traits.lanes; }
  int64_t input() const { return has_input ? config.input_size : 0; }
  int64_t parts() const { return shape.pre_activations; }
  // Of a row of dz, of all weights, and of a vector of weights.
  int64_t row_bytes() const {
    return parts() * config.cell_size * traits.element_bytes;
  }
  int64_t weight_bytes() const {
    return (config.hidden_size + input()) * row_bytes();
  }
  int64_t vector_bytes() const { return traits.lanes * traits.element_bytes; }
  // Rows of the batch in a step, on average.
  int64_t mean_rows() const { return CeilDiv(rows, Max(steps, 1)); }
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PLAN_BACKWARD_PROBLEM_H_
