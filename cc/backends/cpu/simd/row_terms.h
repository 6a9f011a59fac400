// RowTerms: the normalised terms of a row, for the layer-normalised cells. The
// forward and the backward pass compute them by this text.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_TERMS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_TERMS_H_

#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/row_norm.h"
#include "core/layer_norm_cell.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Scales, offsets and biases are by the gate order of the weights.
template <class T, class Cell>
class RowTerms {
 public:
  using V = VecT<T>;
  using Plain = typename Cell::Plain;
  static constexpr int kPlain = Plain::kPreActivations;
  static constexpr int kInputs = Cell::kInputPreActivations;
  static constexpr int kRecurrent = Cell::kRecurrentPreActivations;

  // `terms` has the terms of x and then those of h, `stride` elements apart.
  template <class Args>
  RowTerms(const Args& args, const T* terms, int64_t stride)
      : weights_(args.weights),
        block_(args.config.gate_order.block.data()),
        cell_(args.config.cell_size),
        x_{terms, kInputs, cell_, stride},
        h_{terms + kInputs * stride, kRecurrent, cell_, stride},
        of_x_(MomentsOf(x_, args.config.options.layer_norm.epsilon)),
        of_h_(MomentsOf(h_, args.config.options.layer_norm.epsilon)) {}

  const Moments<T>& of_x() const { return of_x_; }
  const Moments<T>& of_h() const { return of_h_; }
  int64_t x_size() const { return x_.size(); }
  int64_t h_size() const { return h_.size(); }

  // The normalised term of x, or of h, by number of the term.
  TF_LSTM_OPS_INLINE V X(int k, int64_t u) const {
    return of_x_.Normalize(x_.Load(k, u));
  }
  TF_LSTM_OPS_INLINE V H(int k, int64_t u) const {
    return of_h_.Normalize(h_.Load(k, u));
  }
  TF_LSTM_OPS_INLINE V XScale(int k, int64_t u) const {
    return At(weights_.input_scale, k, u);
  }
  TF_LSTM_OPS_INLINE V HScale(int k, int64_t u) const {
    return At(weights_.recurrent_scale, kInputs + k, u);
  }

  // The pre-activations of the plain cell.
  TF_LSTM_OPS_INLINE void PreActivations(int64_t u, V (&z)[kPlain]) const {
    for (int p = 0; p < kPlain; ++p) {
      z[p] = V{};
      if (Cell::HasInput(p)) {
        z[p] = XScale(p, u) * X(p, u) + At(weights_.input_bias, p, u);
      }
      if (Cell::HasRecurrent(p)) {
        const int k = Cell::RecurrentTerm(p);
        z[p] = z[p] + (HScale(k, u) * H(k, u) +
                       At(weights_.recurrent_bias, kInputs + k, u));
      }
    }
  }

 private:
  TF_LSTM_OPS_INLINE V At(const T* vector, int term, int64_t u) const {
    return vector ? LoadN(vector + block_[term] * cell_ + u, cell_ - u) : V{};
  }

  const RnnWeights<const T>& weights_;
  const int* const block_;
  const int64_t cell_;
  const RowParts<T> x_, h_;
  const Moments<T> of_x_, of_h_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_ROW_TERMS_H_
