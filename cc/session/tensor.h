// Tensor: an array of a call, and its shape.
#ifndef TF_LSTM_OPS_SESSION_TENSOR_H_
#define TF_LSTM_OPS_SESSION_TENSOR_H_

#include <cstdint>

namespace tf_lstm_ops::session {

constexpr int kMaxRank = 6;
// A dimension that depends on the call.
constexpr int64_t kUnknown = -1;
// Addresses have at most 2^56 bytes, so no size of several arrays overflows.
constexpr int64_t kMaxArraySize = int64_t{1} << 54;

struct Shape {
  int rank = 0;
  int64_t dims[kMaxRank] = {};

  int64_t last() const { return dims[rank - 1]; }
  void Append(int64_t dim) { dims[rank++] = dim; }
  // The product of dimensions first to end - 1, which must be known.
  int64_t Count(int first, int end) const {
    int64_t count = 1;
    for (int k = first; k < end; ++k) count *= dims[k];
    return count;
  }
  int64_t Count() const { return Count(0, rank); }
  // The rows of `last()` elements.
  int64_t rows() const { return Count(0, rank - 1); }
  // Whether an array of this shape may exist. Dimensions must be known.
  bool Fits() const {
    int64_t count = 1;
    for (int k = 0; k < rank; ++k) {
      // With a zero it does not matter what the others are.
      if (dims[k] == 0) return true;
    }
    for (int k = 0; k < rank; ++k) {
      if (__builtin_mul_overflow(count, dims[k], &count)) return false;
    }
    return count <= kMaxArraySize;
  }
  bool operator==(const Shape& other) const {
    if (rank != other.rank) return false;
    for (int k = 0; k < rank; ++k) {
      if (dims[k] != other.dims[k]) return false;
    }
    return true;
  }
};

// The types of values.
enum class Type : uint8_t {
  kFloat = 0,
  kInt = 1,   // int32, inputs of the session only
  kMask = 2,  // bool [B, T]
};

// An array, contiguous, the last axis fastest. A mask may be null: all steps
// are valid. An operand that is absent is null, with rank 0.
struct Tensor {
  Shape shape;
  void* data = nullptr;

  float* floats() const { return static_cast<float*>(data); }
  const int32_t* ints() const { return static_cast<const int32_t*>(data); }
  bool* mask() const { return static_cast<bool*>(data); }
  bool is_present() const { return shape.rank > 0; }
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_TENSOR_H_
