// CudnnBatch: the sequences and states of a call in the form that cuDNN
// accepts, "cuDNN's form".
//
// Rows of length zero, which cuDNN does not accept, are left out. States are
// [L*D, B, .] whatever the op's layout. BFloat16 becomes float. A tensor that
// already has cuDNN's form is not copied.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_BATCH_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_BATCH_H_

#include <cstdint>
#include <type_traits>
#include <vector>

#include "backends/cuda/cudnn/library.h"
#include "backends/cuda/cudnn/sequences.h"
#include "core/dropout.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

class CudnnBatch {
 public:
  // `rnn` must outlive this object.
  explicit CudnnBatch(const MultiLayerRnn& rnn);

  // Copies the lengths to the device. `device` must outlive this object.
  Status Begin(const Device& device);

  // The number of rows of the batch that cuDNN gets: those of positive length.
  int64_t rows() const { return static_cast<int64_t>(lengths_.size()); }
  bool has_all_rows() const { return rows() == rnn_.batch; }
  // [rows()], in device memory.
  const int32_t* lengths() const { return device_lengths_; }
  // Whether cuDNN must read the lengths. It may be faster if it need not.
  bool is_padded() const { return has_padding_ || !rnn_.time_major; }
  int64_t SequenceSize(int64_t width) const {
    return rnn_.time * rows() * width;
  }
  int64_t StatesSize(int64_t width) const {
    return rnn_.model.pseudo_layers() * rows() * width;
  }

  // Sets `data` to describe sequences with `width` elements per step. cuDNN
  // sets the padding of outputs to zero. Errors: those of Check in library.h.
  Status Describe(const Cudnn& cudnn, cudnnDataType_t type, int64_t width,
                  cudnnRNNDataDescriptor_t data) const;

  // The op's sequences [T, B, width] or states in cuDNN's form: the tensor
  // itself or a copy, which belongs to the call. Null stays null.
  template <class T>
  Status ReadSequences(int64_t width, const T* data,
                       const CudnnType<T>** sequences) const {
    return Read(SequenceLayouts(width), data, SequenceSize(width), sequences);
  }
  template <class T>
  Status ReadStates(int64_t width, const T* data,
                    const CudnnType<T>** states) const {
    return Read(StateLayouts(width), data, StatesSize(width), states);
  }
  // Allocate* set the address where cuDNN writes sequences or states: the op's
  // tensor itself, or memory of the call. Write* then copy this memory to the
  // tensor. Rows of length zero are not written.
  template <class T>
  Status AllocateSequences(int64_t width, T* data,
                           CudnnType<T>** sequences) const {
    return Allocate(SequenceLayouts(width), data, SequenceSize(width),
                    sequences);
  }
  template <class T>
  Status AllocateStates(int64_t width, T* data, CudnnType<T>** states) const {
    return Allocate(StateLayouts(width), data, StatesSize(width), states);
  }
  template <class T>
  Status WriteSequences(int64_t width, const CudnnType<T>* sequences,
                        T* data) const {
    return Write(SequenceLayouts(width), sequences, data);
  }
  template <class T>
  Status WriteStates(int64_t width, const CudnnType<T>* states, T* data) const {
    return Write(StateLayouts(width), states, data);
  }

  // Clears the padding of sequences in cuDNN's form.
  template <class C>
  Status ClearPadding(int64_t width, C* sequences) const {
    if (!has_padding_) return Status();
    cuda::ClearPadding<C> padding;
    padding.time = rnn_.time;
    padding.batch = rows();
    padding.width = width;
    padding.time_major = rnn_.time_major;
    padding.lengths = device_lengths_;
    padding.data = sequences;
    return Clear(*device_, padding);
  }
  // The arguments of ComputeDropout for a layer's output in cuDNN's form. `key`
  // is in device memory. The caller sets `from` and `to`.
  template <class C>
  DropOutputs<C> Dropout(const DropoutMask& mask, const uint64_t* key,
                         int64_t layer) const {
    auto drop = DropoutOfLayer<C>(rnn_, mask, key, layer);
    drop.rows = rows();
    drop.indices = device_indices_;
    return drop;
  }

 private:
  // The strides of a tensor [outer, rows, width].
  struct Layout {
    int64_t outer, width, outer_stride, row_stride;
  };
  struct Layouts {
    Layout op, cudnn;
  };

  Layouts SequenceLayouts(int64_t width) const;
  Layouts StateLayouts(int64_t width) const;
  bool AreSame(const Layouts& layouts) const;

  template <class T>
  BatchRows<T> OpRows(const Layouts& layouts, T* data) const {
    return {data, layouts.op.outer_stride, layouts.op.row_stride,
            device_indices_};
  }
  template <class T>
  static BatchRows<T> CudnnRows(const Layouts& layouts, T* data) {
    return {data, layouts.cudnn.outer_stride, layouts.cudnn.row_stride,
            nullptr};
  }

  template <class T, class C = CudnnType<T>>
  Status Read(const Layouts& layouts, const T* data, int64_t size,
              const C** copy) const {
    if constexpr (std::is_same_v<T, C>) {
      *copy = data;
      if (!data || AreSame(layouts)) return Status();
    }
    *copy = nullptr;
    if (!data) return Status();
    C* to = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_->Allocate(size, &to));
    *copy = to;
    return ConvertToCudnn<T>(
        *device_, {layouts.op.outer, rows(), layouts.op.width,
                   OpRows<const T>(layouts, data), CudnnRows(layouts, to)});
  }
  template <class T, class C = CudnnType<T>>
  Status Allocate(const Layouts& layouts, T* data, int64_t size, C** to) const {
    if constexpr (std::is_same_v<T, C>) {
      *to = data;
      if (!data || AreSame(layouts)) return Status();
    }
    *to = nullptr;
    return data ? device_->Allocate(size, to) : Status();
  }
  template <class T, class C = CudnnType<T>>
  Status Write(const Layouts& layouts, const C* from, T* data) const {
    if constexpr (std::is_same_v<T, C>) {
      if (from == data) return Status();
    }
    if (!data) return Status();
    return ConvertFromCudnn<T>(
        *device_, {layouts.op.outer, rows(), layouts.op.width,
                   CudnnRows<const C>(layouts, from), OpRows(layouts, data)});
  }

  const MultiLayerRnn& rnn_;
  std::vector<int32_t> lengths_;  // of the rows that cuDNN gets
  std::vector<int32_t> indices_;  // of those rows in the batch
  bool has_padding_ = false;
  const Device* device_ = nullptr;
  const int32_t* device_lengths_ = nullptr;
  const int32_t* device_indices_ = nullptr;  // null: all rows
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_BATCH_H_
