// LayerGroup: consecutive layers that are one call of cuDNN, with the
// descriptors of their tensors.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYER_GROUP_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYER_GROUP_H_

#include <cstdint>
#include <memory>

#include "backends/cuda/cudnn/batch.h"
#include "backends/cuda/cudnn/layers.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

// The objects that the groups of a call share. They must outlive the groups.
struct CudnnCall {
  const Device& device;
  const Cudnn& cudnn;
  cudnnHandle_t handle;
  const RnnModel& model;
  const CudnnBatch& batch;
};

// Tensors in cuDNN's form (batch.h), in device memory, which the caller owns. x
// and y are the input and the output of a group. States and params are those of
// all layers. Cell states are null unless the model is an LSTM. cuDNN's names:
// hx is h0, hy is final_h, cx is c0, cy is final_c.
template <class C>
struct CudnnInputs {
  const C *x, *h0, *c0, *params;
};
template <class C>
struct CudnnForward : CudnnInputs<C> {
  C *y, *final_h, *final_c;
  char* reserve;  // the group's; null in inference
};
template <class C>
struct CudnnBackward : CudnnInputs<C> {
  const C *y, *y_grad, *final_h_grad, *final_c_grad;
  C *x_grad, *h0_grad, *c0_grad, *params_grad;
  const char* reserve;  // the group's
};

template <class C>
class LayerGroup {
 public:
  // Errors: those of CudnnLayers::Find.
  static Status Make(const CudnnCall& call, const CudnnOptions& options,
                     const LayerRange& range, bool is_training,
                     std::unique_ptr<LayerGroup>* group);

  int64_t first() const { return range_.first; }
  int64_t input_size() const { return layers_->input_size(); }
  // Sizes in bytes. All groups of a call may share a workspace.
  int64_t workspace_bytes() const {
    return static_cast<int64_t>(workspace_bytes_);
  }
  int64_t reserve_bytes() const { return static_cast<int64_t>(reserve_bytes_); }

  // `workspace` is device memory of workspace_bytes(). Errors: those of Check
  // in library.h and of Device.
  Status ComputeForward(const CudnnForward<C>& t, void* workspace) const;
  // Overwrites the group's part of params_grad. Leaves undefined values in the
  // padding of x_grad. Does not change the reserve. Errors: likewise.
  Status ComputeBackward(const CudnnBackward<C>& t, void* workspace) const;

 private:
  LayerGroup(const CudnnCall& call, const LayerRange& range)
      : call_(call), range_(range) {}

  Status MakeDescriptors(cudnnDataType_t type);
  Status FindWeights(const C* params, const C** weights) const;
  Status ComputeWeightGrads(const CudnnBackward<C>& t, void* workspace,
                            char* reserve) const;

  size_t weight_bytes() const { return layers_->weights().size() * sizeof(C); }
  // The group's part of a state. Null stays null.
  template <class E>
  E* State(E* states, int64_t width) const {
    return states ? states + range_.first * call_.model.directions *
                                 call_.batch.rows() * width
                  : nullptr;
  }

  const CudnnCall& call_;
  const LayerRange range_;
  std::shared_ptr<const CudnnLayers> layers_;
  RnnDataDescriptor x_, y_;
  TensorDescriptor h_, c_;
  size_t workspace_bytes_ = 0, reserve_bytes_ = 0;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_CUDNN_LAYER_GROUP_H_
