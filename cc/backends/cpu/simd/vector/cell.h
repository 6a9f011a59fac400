// What the passes read of a cell: its saved activations, dropout and
// parameters.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_CELL_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_CELL_H_

#include <type_traits>

#include "backends/cpu/simd/vector/pairs.h"
#include "backends/cpu/simd/vector/vec_math.h"
#include "core/cell_shape.h"
#include "core/layer_tensors.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Calls f(integral_constant<int, k>, member of Cell::Outputs) for each saved
// activation.
template <class Cell, int k = 0, class F>
TF_LSTM_OPS_INLINE void ForEachSaved(const F& f) {
  if constexpr (k < Cell::kSavedCount) {
    f(std::integral_constant<int, k>{}, Cell::kSaved[k]);
    ForEachSaved<Cell, k + 1>(f);
  }
}

// Lanes of activation k of a row from u on. Without data they are zero.
template <class T>
TF_LSTM_OPS_INLINE VecT<T> LoadSaved(const SavedActivations<const T>& from,
                                     int k, int64_t e, int64_t output,
                                     int64_t u, int64_t n) {
  if (!from.Has(k)) return VecT<T>{};
  return from.At(k, e, output, u, [n](const auto* at) { return LoadN(at, n); });
}

// A vector of h of a row of the batch after the dropout of gate pre-activation
// `part`. `pass` is a Forward or a Backward.
template <class Pass, class V>
TF_LSTM_OPS_INLINE V DropH(const Pass& pass, V h, int part, int64_t row,
                           int64_t u) {
  const auto* keep = pass.args.recurrent_dropout.data;
  if (!keep) return h;
  keep += (pass.GateBlock(part) * pass.batch + row) * pass.hidden_size + u;
  return h * LoadN(keep, pass.hidden_size - u);
}

// A cell's parameters for one vector of units from u on.
template <class T, class Cell>
class ParametersAt {
 public:
  template <class Args>
  ParametersAt(const Args& args, int64_t u)
      : clip_(VecT<T>{} + static_cast<T>(args.config.cell_clip)) {
    if constexpr (Cell::kHasPeephole) {
      for (int p = 0; p < Cell::kPreActivations; ++p) {
        const T* weights = args.weights.peephole[p];
        if (weights) {
          peephole_[p] = LoadN(weights + u, args.config.cell_size - u);
        }
      }
      parameters_.peephole = args.weights.has_peephole() ? peephole_ : nullptr;
    }
    parameters_.clip = args.config.cell_clip > 0 ? &clip_ : nullptr;
    parameters_.options = &args.config.options;
  }
  ParametersAt(const ParametersAt&) = delete;
  ParametersAt& operator=(const ParametersAt&) = delete;

  const CellParameters<VecT<T>>& get() const { return parameters_; }

 private:
  VecT<T> clip_;
  VecT<T> peephole_[Cell::kPreActivations] = {};
  CellParameters<VecT<T>> parameters_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_CELL_H_
