#include "core/shape.h"

namespace tf_lstm_ops {

std::vector<int64_t> Shape::dims() const {
  std::vector<int64_t> all(rank());
  for (int k = 0; k < rank(); ++k) all[k] = dim(k);
  return all;
}

std::string Shape::ToString() const {
  if (!rank_known()) return "<unknown>";
  std::string text = "[";
  for (int k = 0; k < rank(); ++k) {
    if (k > 0) text += ',';
    text += dim(k) == kUnknown ? "?" : std::to_string(dim(k));
  }
  return text + "]";
}

bool CheckedProduct(const int64_t* factors, size_t count, int64_t* product) {
  // A zero factor must not hide an overflow of the other factors, because sizes
  // are also used as strides.
  int64_t nonzero = 1;
  bool zero = false;
  for (size_t k = 0; k < count; ++k) {
    if (factors[k] == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(nonzero, factors[k], &nonzero)) {
      return false;
    }
  }
  *product = zero ? 0 : nonzero;
  return true;
}

}  // namespace tf_lstm_ops
