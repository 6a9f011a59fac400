// Arrays: the caller's arrays of one call, as CpuCall takes an op's tensors.
#ifndef TF_LSTM_OPS_TRAINING_ARRAYS_H_
#define TF_LSTM_OPS_TRAINING_ARRAYS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/float16.h"
#include "core/inline_vector.h"
#include "core/shape.h"
#include "core/signature.h"
#include "core/status.h"
#include "tf_lstm_ops.h"

namespace tf_lstm_ops::training {

// The mask of an op is not an array of its own, but a member of array 0.
constexpr const char* kMask = "mask";

// The array of element type T in the C interface.
template <class T>
inline constexpr int32_t kArrayType = TF_LSTM_OPS_FLOAT32;
template <>
inline constexpr int32_t kArrayType<double> = TF_LSTM_OPS_FLOAT64;
template <>
inline constexpr int32_t kArrayType<BFloat16> = TF_LSTM_OPS_BFLOAT16;

// A view of an array.
class Array {
 public:
  Array() = default;
  Array(const Shape& shape, int64_t size, void* data)
      : shape_(shape), size_(size), data_(data) {}

  bool is_null() const { return !shape_.rank_known(); }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return size_; }
  size_t bytes() const { return 0; }  // no advice on the caller's memory
  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  Shape shape_;
  int64_t size_ = 0;
  void* data_ = nullptr;
};

// The arrays are checked where they are read. Does not own them.
class Arrays {
 public:
  using Tensor = Array;
  using Tensors = InlineVector<Array, kInlineArguments>;
  using Type = int32_t;
  template <class T>
  static constexpr int32_t kType = kArrayType<T>;
  // What keeps them has a mutex, which another thread may hold at a fork.
  static constexpr bool kKeepsWeights = false;

  // The arrays of a call of the op with this signature. `type` is that of all
  // arrays. `may_skip`: whether an output may be null, as a gradient may, else
  // only final states may.
  Arrays(const Signature& signature, bool may_skip, int32_t type,
         const tf_lstm_ops_array* inputs, const tf_lstm_ops_array* outputs)
      : signature_(signature),
        may_skip_(may_skip),
        type_(type),
        inputs_(inputs),
        outputs_(outputs) {}

  // Checks the type, size and data of the inputs, and then as
  // tf::KernelContext does. Error: InvalidArgument.
  Status Inputs(const Signature& signature, Tensors* inputs,
                Sizes* sizes) const;
  // Checks that output `index` has this type and shape, and sets `output` to
  // it. Error: InvalidArgument.
  Status AllocateOutput(int index, int32_t type, const Shape& shape,
                        Array* output) const;
  // The same for all outputs of a gradient op.
  Status Outputs(const Signature& signature, const Tensors& inputs,
                 const Sizes& sizes, int32_t type, Tensors* outputs) const;

 private:
  Status Mask(const Tensors& inputs, Array* mask) const;

  const Signature& signature_;
  const bool may_skip_;
  const int32_t type_;
  const tf_lstm_ops_array* const inputs_;
  const tf_lstm_ops_array* const outputs_;
  // The mask in the form that an op takes.
  mutable std::unique_ptr<bool[]> mask_;
};

}  // namespace tf_lstm_ops::training

#endif  // TF_LSTM_OPS_TRAINING_ARRAYS_H_
