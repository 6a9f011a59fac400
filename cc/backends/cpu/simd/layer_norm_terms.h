// The normalised terms of a row, for the layer-normalised cells: mean, variance
// and their gradients. The forward and the backward pass compute the terms by
// this text.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_LAYER_NORM_TERMS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_LAYER_NORM_TERMS_H_

#include <utility>

#include "backends/cpu/simd/cell_shape.h"
#include "core/layer_norm_cell.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Adds lane k + kHalf to lane k, then goes on with the first kHalf lanes.
template <class T, int kHalf, int... k>
TF_LSTM_OPS_INLINE T SumOfLanes(VecT<T> v,
                                std::integer_sequence<int, k...> all) {
  if constexpr (kHalf > 0) {
    constexpr int kL = kLanes<T>;
    return SumOfLanes<T, kHalf / 2>(v + Shuffle<T, (k + kHalf) % kL...>(v, v),
                                    all);
  }
  return v[0];
}
template <class T>
TF_LSTM_OPS_INLINE T SumOfLanes(VecT<T> v) {
  constexpr int kL = kLanes<T>;
  return SumOfLanes<T, kL / 2>(v, std::make_integer_sequence<int, kL>());
}

// `parts` parts of `width` elements each, `stride` elements apart.
template <class T>
struct RowParts {
  const T* data;
  int parts;
  int64_t width, stride;

  int64_t size() const { return parts * width; }
  VecT<T> Load(int part, int64_t u) const {
    return LoadN(data + part * stride + u, width - u);
  }
};

// The normalised value of an element x is (x - mean) * scale.
template <class T>
struct Moments {
  T mean = 0, scale = 0;

  TF_LSTM_OPS_INLINE VecT<T> Normalize(VecT<T> x) const {
    return (x - mean) * scale;
  }
};

// scale = 1 / sqrt(variance + epsilon). The order of the sums depends on the
// shape of the row only.
template <class T>
Moments<T> MomentsOf(const RowParts<T>& row, double epsilon) {
  constexpr int kL = kLanes<T>;
  const T size = static_cast<T>(row.size());
  VecT<T> sum = {}, squares = {};
  for (int64_t u = 0; u < row.width; u += kL) {
    VecT<T> some = row.Load(0, u);
    for (int p = 1; p < row.parts; ++p) some = some + row.Load(p, u);
    sum = sum + some;
  }
  Moments<T> of;
  of.mean = SumOfLanes<T>(sum) / size;
  const VecT<T> ones = Broadcast(T(1));
  T one[kL];
  Store(ones, one);
  for (int64_t u = 0; u < row.width; u += kL) {
    const VecT<T> inside = LoadN(one, row.width - u);  // else 0
    VecT<T> some = {};
    for (int p = 0; p < row.parts; ++p) {
      const VecT<T> d = (row.Load(p, u) - of.mean) * inside;
      some = Fma(d, d, some);
    }
    squares = squares + some;
  }
  const double variance = SumOfLanes<T>(squares) / size;
  of.scale = static_cast<T>(1 / __builtin_sqrt(variance + epsilon));
  return of;
}

// The gradient of a row x that was normalised, from the gradients t of the
// normalised values v: dx = scale * (t - mean(t) - v * mean(t * v)).
template <class T>
class NormGradient {
 public:
  // Adds one vector of t and v to the sums. t is zero behind the row's end.
  TF_LSTM_OPS_INLINE void Add(VecT<T> t, VecT<T> v) {
    sum_ = sum_ + t;
    products_ = Fma(t, v, products_);
  }
  // Call it after the last Add. `size` is the number of elements of the row.
  void Finish(int64_t size) {
    mean_ = SumOfLanes<T>(sum_) / static_cast<T>(size);
    mean_product_ = SumOfLanes<T>(products_) / static_cast<T>(size);
  }
  TF_LSTM_OPS_INLINE VecT<T> Of(VecT<T> t, VecT<T> v, T scale) const {
    return (t - mean_ - v * mean_product_) * scale;
  }

 private:
  VecT<T> sum_ = {}, products_ = {};
  T mean_ = 0, mean_product_ = 0;
};

// The terms of a row. Scales, offsets and biases are by the gate order of the
// weights.
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

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_LAYER_NORM_TERMS_H_
