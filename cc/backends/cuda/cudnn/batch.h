// CudnnBatch: the sequences of a call as cuDNN takes them. Rows of length zero,
// which it does not take, are left out, and states are [L*D,B,.] whatever the
// op's layout; only where that makes a difference is anything moved.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_BATCH_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_BATCH_H_

#include <cstdint>
#include <vector>

#include "backends/cuda/cudnn/library.h"
#include "backends/cuda/cudnn/sequences.h"
#include "core/dropout.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

class CudnnBatch {
 public:
  explicit CudnnBatch(const MultiLayerRnn& problem);

  // Puts lengths where cuDNN wants them. `device` must outlive this object.
  Status Begin(const Device& device);

  int64_t rows() const { return static_cast<int64_t>(lengths_.size()); }
  bool is_whole() const { return rows() == problem_.batch; }
  const int32_t* lengths() const { return device_lengths_; }
  // Whether cuDNN is to read lengths at all: it may be faster without.
  bool is_padded() const { return has_padding_ || !problem_.time_major; }
  int64_t SequenceSize(int64_t width) const {
    return problem_.time * rows() * width;
  }
  int64_t StatesSize(int64_t width) const {
    return problem_.model.pseudo_layers() * rows() * width;
  }

  // Of sequences with so many numbers a step; padding that cuDNN writes is 0.
  Status Describe(const Cudnn& cudnn, cudnnDataType_t type, int64_t width,
                  cudnnRNNDataDescriptor_t data) const;

  // The op's sequences and states as cuDNN takes them: where they are, or
  // copies. Null stays null.
  template <class T>
  Status SequencesIn(int64_t width, const T* data,
                     const CudnnType<T>** sequences) const {
    return In(SequenceForms(width), data, SequenceSize(width), sequences);
  }
  template <class T>
  Status StatesIn(int64_t width, const T* data,
                  const CudnnType<T>** states) const {
    return In(StateForms(width), data, StatesSize(width), states);
  }
  // Where cuDNN is to write such, and how it gets to where the op has them.
  // Other rows are not touched.
  template <class T>
  Status SequencesFor(int64_t width, T* data, CudnnType<T>** sequences) const {
    return For(SequenceForms(width), data, SequenceSize(width), sequences);
  }
  template <class T>
  Status StatesFor(int64_t width, T* data, CudnnType<T>** states) const {
    return For(StateForms(width), data, StatesSize(width), states);
  }
  template <class T>
  Status SequencesOut(int64_t width, const CudnnType<T>* sequences,
                      T* data) const {
    return Out(SequenceForms(width), sequences, data);
  }
  template <class T>
  Status StatesOut(int64_t width, const CudnnType<T>* states, T* data) const {
    return Out(StateForms(width), states, data);
  }

  // Zeros where sequences have padding.
  template <class C>
  Status ClearPadding(int64_t width, C* sequences) const {
    if (!has_padding_) return Status();
    cuda::ClearPadding<C> padding;
    padding.time = problem_.time;
    padding.batch = rows();
    padding.width = width;
    padding.time_major = problem_.time_major;
    padding.lengths = device_lengths_;
    padding.data = sequences;
    return Clear(*device_, padding);
  }
  // A layer's outputs, or gradients by them, as the next layer sees them. The
  // mask's key is that in the device's memory.
  template <class C>
  Status Dropped(const DropoutMask& mask, const uint64_t* key, int64_t layer,
                 const C* from, C* to) const {
    auto drop = OutputsToDrop<C>(problem_, mask, key, layer, from);
    drop.rows = rows();
    drop.numbers = device_numbers_;
    drop.to = to;
    return Drop(*device_, drop);
  }

 private:
  // Rows of the batch in [outer, rows, width] with these strides.
  struct OpVariant {
    int64_t outer, width, outer_stride, row_stride;
  };
  struct Forms {
    OpVariant op, cudnn;
  };

  Forms SequenceForms(int64_t width) const;
  Forms StateForms(int64_t width) const;
  bool AreSame(const Forms& forms) const;

  template <class T>
  BatchRows<T> OfOp(const Forms& forms, T* data) const {
    return {data, forms.op.outer_stride, forms.op.row_stride, device_numbers_};
  }
  template <class T>
  static BatchRows<T> OfCudnn(const Forms& forms, T* data) {
    return {data, forms.cudnn.outer_stride, forms.cudnn.row_stride, nullptr};
  }

  template <class T, class C = CudnnType<T>>
  Status In(const Forms& forms, const T* data, int64_t size,
            const C** copy) const {
    if constexpr (std::is_same_v<T, C>) {
      *copy = data;
      if (!data || AreSame(forms)) return Status();
    }
    *copy = nullptr;
    if (!data) return Status();
    C* to = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(size, &to));
    *copy = to;
    return MoveIn<T>(*device_,
                     {forms.op.outer, rows(), forms.op.width,
                      OfOp<const T>(forms, data), OfCudnn(forms, to)});
  }
  template <class T, class C = CudnnType<T>>
  Status For(const Forms& forms, T* data, int64_t size, C** place) const {
    if constexpr (std::is_same_v<T, C>) {
      *place = data;
      if (!data || AreSame(forms)) return Status();
    }
    *place = nullptr;
    return data ? device_->Allocate(size, place) : Status();
  }
  template <class T, class C = CudnnType<T>>
  Status Out(const Forms& forms, const C* from, T* data) const {
    if constexpr (std::is_same_v<T, C>) {
      if (from == data) return Status();
    }
    if (!data) return Status();
    return MoveOut<T>(*device_,
                      {forms.op.outer, rows(), forms.op.width,
                       OfCudnn<const C>(forms, from), OfOp(forms, data)});
  }

  const MultiLayerRnn& problem_;
  std::vector<int32_t> lengths_;  // of the rows that cuDNN gets
  std::vector<int32_t> numbers_;  // and which they are
  bool has_padding_ = false;
  const Device* device_ = nullptr;
  const int32_t* device_lengths_ = nullptr;
  const int32_t* device_numbers_ = nullptr;  // null if all
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_BATCH_H_
