// Shape: the dimensions of a tensor. While a graph is built, the rank or some
// dimensions may be unknown. Kernels and shape inference use the same checks of
// shapes.
#ifndef TF_LSTM_OPS_CORE_SHAPE_H_
#define TF_LSTM_OPS_CORE_SHAPE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tf_lstm_ops {

// An unknown dimension.
constexpr int64_t kUnknown = -1;

class Shape {
 public:
  Shape() = default;  // unknown rank
  explicit Shape(std::vector<int64_t> dims)
      : rank_known_(true), dims_(std::move(dims)) {}

  bool rank_known() const { return rank_known_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  // kUnknown where the rank or the dimension is unknown.
  int64_t dim(int k) const { return rank_known_ ? dims_[k] : kUnknown; }
  const std::vector<int64_t>& dims() const { return dims_; }
  std::string ToString() const;  // such as "[2,?,3]"

 private:
  bool rank_known_ = false;
  std::vector<int64_t> dims_;
};

// Sets `product` to the product of non-negative factors. Returns false where
// the product, without its zero factors, does not fit into int64.
bool CheckedProduct(const std::vector<int64_t>& factors, int64_t* product);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_SHAPE_H_
