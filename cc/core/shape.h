// Shape: the dimensions of a tensor. While a graph is built, the rank or some
// dimensions may be unknown. Kernels and shape inference use the same checks of
// shapes.
#ifndef TF_LSTM_OPS_CORE_SHAPE_H_
#define TF_LSTM_OPS_CORE_SHAPE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace tf_lstm_ops {

// An unknown dimension.
constexpr int64_t kUnknown = -1;

// A shape stores its dimensions in the object, because each call of an op makes
// several shapes.
class Shape {
 public:
  // The largest rank whose dimensions are all stored. No op uses a higher one.
  // Of a shape of a higher rank, the dimensions from kMaxDims on count as
  // unknown.
  static constexpr int kMaxDims = 8;

  Shape() = default;  // unknown rank
  Shape(std::initializer_list<int64_t> dims)
      : Shape(dims.begin(), dims.size()) {}
  explicit Shape(const std::vector<int64_t>& dims)
      : Shape(dims.data(), dims.size()) {}
  // A shape of unknown dimensions. `rank` is not negative.
  static Shape OfRank(int rank) {
    Shape shape;
    shape.set_rank(rank);
    return shape;
  }

  bool rank_known() const { return rank_ >= 0; }
  int rank() const { return std::max(rank_, 0); }  // 0 if unknown
  // kUnknown where the rank or the dimension is unknown.
  int64_t dim(int k) const {
    return k < std::min(rank_, kMaxDims) ? dims_[k] : kUnknown;
  }
  // Makes all dimensions unknown. `rank` is not negative.
  void set_rank(int rank) {
    rank_ = rank;
    dims_.fill(kUnknown);
  }
  // Has no effect on a dimension from kMaxDims on.
  void set_dim(int k, int64_t value) {
    if (k < kMaxDims) dims_[k] = value;
  }
  // The stored dimensions.
  const int64_t* data() const { return dims_.data(); }
  // A copy of all dimensions.
  std::vector<int64_t> dims() const;
  std::string ToString() const;  // such as "[2,?,3]"

  // Whether both have the same rank and dimensions. False for ranks above
  // kMaxDims.
  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && a.rank_ <= kMaxDims &&
           std::equal(a.data(), a.data() + a.rank(), b.data());
  }

 private:
  Shape(const int64_t* dims, size_t rank) : rank_(static_cast<int>(rank)) {
    std::copy_n(dims, std::min<size_t>(rank, kMaxDims), dims_.begin());
  }

  int rank_ = -1;  // -1: unknown
  std::array<int64_t, kMaxDims> dims_ = {};
};

// Sets `product` to the product of non-negative factors. Returns false where
// the product, without its zero factors, does not fit into int64.
bool CheckedProduct(const int64_t* factors, size_t count, int64_t* product);
inline bool CheckedProduct(std::initializer_list<int64_t> factors,
                           int64_t* product) {
  return CheckedProduct(factors.begin(), factors.size(), product);
}
inline bool CheckedProduct(const std::vector<int64_t>& factors,
                           int64_t* product) {
  return CheckedProduct(factors.data(), factors.size(), product);
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_SHAPE_H_
