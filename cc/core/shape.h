// Shape: the dimensions of a tensor. Some or all may be unknown while a graph
// is built. Kernels pass known shapes and shape inference passes partial ones,
// so one check serves both.
#ifndef TF_LSTM_OPS_CORE_SHAPE_H_
#define TF_LSTM_OPS_CORE_SHAPE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tf_lstm_ops {

constexpr int64_t kUnknown = -1;

class Shape {
 public:
  Shape() = default;  // unknown rank
  explicit Shape(std::vector<int64_t> dims)
      : rank_known_(true), dims_(std::move(dims)) {}

  bool rank_known() const { return rank_known_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  // kUnknown where the rank or the dimension is.
  int64_t dim(int k) const { return rank_known_ ? dims_[k] : kUnknown; }
  const std::vector<int64_t>& dims() const { return dims_; }
  std::string ToString() const;  // [2,?,3]

 private:
  bool rank_known_ = false;
  std::vector<int64_t> dims_;
};

// Product of non-negative factors. Returns false where it exceeds int64.
bool CheckedProduct(const std::vector<int64_t>& factors, int64_t* product);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_SHAPE_H_
