// CudnnRnn: a multi-layer RNN (core/multi_layer_rnn.h) without dropout, by
// cuDNN's standard algorithm. All layers are one call of cuDNN.
//
// cuDNN's weight space has the layout of params. It takes no rows of length
// zero: they compute one step of zeros here, and their results are replaced.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_RNN_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_RNN_H_

#include <cstdint>
#include <vector>

#include "backends/cuda/cudnn/library.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

// All tensors lie in device memory, belong to the caller, and have the shapes
// of MultiLayerForward and MultiLayerBackward. T is float, double or Half.
template <class T>
class CudnnRnn {
 public:
  // Both must outlive the object.
  CudnnRnn(const Device& device, const MultiLayerRnn& rnn);

  // Must be called before the functions below. Errors: FailedPrecondition
  // without cuDNN; InvalidArgument for sizes beyond int32; Unimplemented where
  // cuDNN does not support the RNN; ResourceExhausted; Internal.
  Status Begin(bool is_training);

  // The size of cuDNN's reserve in elements of T.
  int64_t reserve_size() const {
    return static_cast<int64_t>((reserve_bytes_ + sizeof(T) - 1) / sizeof(T));
  }

  // In inference t.reserve is null. Errors: ResourceExhausted; Internal.
  Status ComputeForward(const MultiLayerForward<T>& t) const;
  // Does not change the reserve, so further backward passes may use it. Errors:
  // likewise.
  Status ComputeBackward(const MultiLayerBackward<T>& t) const;

 private:
  bool is_empty() const { return rnn_.rows() == 0; }
  bool has_empty_rows() const { return !empty_rows_.empty(); }

  Status CheckSizes() const;
  Status CopyLengths();
  Status MakeRnn();
  Status MakeDescriptors();
  Status FindSizes(bool is_training);
  Status Describe(int64_t width, cudnnRNNDataDescriptor_t data) const;

  // A copy of a sequence [T, B, width], zero in padding.
  Status Mask(const T* from, int64_t width, T* to) const;
  // Sets `read` to the sequence, or to such a copy if there are rows of length
  // zero.
  Status ReadSequence(const T* data, int64_t width, const T** read) const;
  // Sets `read` to a state in cuDNN's order [L*D, B, width]: a copy where the
  // op has another one, or where `clears` rows of length zero. Null stays null.
  Status ReadState(const T* data, int64_t width, bool clears,
                   const T** read) const;
  // Sets `to` to where cuDNN writes a state: the op's tensor or a copy.
  Status AllocateState(T* data, int64_t width, T** to) const;
  // Writes the state to the op's tensor. Rows of length zero are those of
  // `other`, in the op's order.
  Status WriteState(const T* from, int64_t width, const T* other,
                    T* data) const;
  // Copies a state [L*D, B, width] to [B, L*D, width] or back.
  Status Transpose(const T* from, int64_t width, bool to_op, T* to) const;

  Status CallForward(const MultiLayerForward<T>& t, T* h, T* c) const;
  Status CallBackward(const MultiLayerBackward<T>& t, T* x_grad, T* h_grad,
                      T* c_grad) const;

  const Device& device_;
  const MultiLayerRnn& rnn_;
  const RnnModel& model_;
  std::vector<int64_t> empty_rows_;          // rows of length zero
  std::vector<int32_t> lengths_;             // those that cuDNN gets
  const int32_t* device_lengths_ = nullptr;  // those of the op
  const int32_t* device_cudnn_lengths_ = nullptr;
  const Cudnn* cudnn_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  DropoutDescriptor dropout_;  // rate 0; cuDNN requires a descriptor
  RnnDescriptor descriptor_;
  RnnDataDescriptor x_, y_;
  TensorDescriptor h_, c_;
  size_t weight_bytes_ = 0, workspace_bytes_ = 0, reserve_bytes_ = 0;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_RNN_H_
