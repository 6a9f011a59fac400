#include "core/shape.h"

namespace tf_lstm_ops {

std::string Shape::ToString() const {
  if (!rank_known_) return "<unknown>";
  std::string text = "[";
  for (size_t k = 0; k < dims_.size(); ++k) {
    if (k > 0) text += ',';
    text += dims_[k] == kUnknown ? "?" : std::to_string(dims_[k]);
  }
  return text + "]";
}

bool CheckedProduct(const std::vector<int64_t>& factors, int64_t* product) {
  // A zero factor must not hide an overflow of the other factors, because sizes
  // are also used as strides.
  int64_t nonzero = 1;
  bool zero = false;
  for (const int64_t factor : factors) {
    if (factor == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(nonzero, factor, &nonzero)) {
      return false;
    }
  }
  *product = zero ? 0 : nonzero;
  return true;
}

}  // namespace tf_lstm_ops
