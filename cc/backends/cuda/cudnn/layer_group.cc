#include "backends/cuda/cudnn/layer_group.h"

namespace tf_lstm_ops::cuda {
namespace {

// Describes states [states, rows, width].
Status DescribeStates(const Cudnn& cudnn, cudnnDataType_t type,
                      const int (&dims)[3], cudnnTensorDescriptor_t tensor) {
  const int strides[] = {dims[1] * dims[2], dims[2], 1};
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(cudnn, cudnnSetTensorNdDescriptor, tensor,
                                    type, 3, dims, strides);
  return Status();
}

}  // namespace

template <class C>
Status LayerGroup<C>::Make(const CudnnCall& call, const CudnnOptions& options,
                           const LayerRange& range, bool is_training,
                           std::unique_ptr<LayerGroup>* group) {
  std::unique_ptr<LayerGroup> made(new LayerGroup(call, range));
  TF_LSTM_OPS_RETURN_IF_ERROR(CudnnLayers::Find(
      call.cudnn, call.device, call.model, options, range, &made->layers_));
  TF_LSTM_OPS_RETURN_IF_ERROR(made->MakeDescriptors(options.type));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      call.cudnn, cudnnGetRNNTempSpaceSizes, call.handle,
      made->layers_->descriptor(),
      is_training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
      made->x_.get(), &made->workspace_bytes_, &made->reserve_bytes_);
  *group = std::move(made);
  return Status();
}

template <class C>
Status LayerGroup<C>::MakeDescriptors(cudnnDataType_t type) {
  const Cudnn& cudnn = call_.cudnn;
  const RnnModel& model = call_.model;
  TF_LSTM_OPS_RETURN_IF_ERROR(x_.Make(cudnn));
  TF_LSTM_OPS_RETURN_IF_ERROR(y_.Make(cudnn));
  TF_LSTM_OPS_RETURN_IF_ERROR(h_.Make(cudnn));
  TF_LSTM_OPS_RETURN_IF_ERROR(c_.Make(cudnn));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      call_.batch.Describe(cudnn, type, input_size(), x_.get()));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      call_.batch.Describe(cudnn, type, model.output_size(), y_.get()));
  const auto states = static_cast<int>(range_.count * model.directions);
  const auto rows = static_cast<int>(call_.batch.rows());
  TF_LSTM_OPS_RETURN_IF_ERROR(DescribeStates(
      cudnn, type, {states, rows, static_cast<int>(model.hidden_size)},
      h_.get()));
  return DescribeStates(
      cudnn, type, {states, rows, static_cast<int>(model.cell_size)}, c_.get());
}

// The weight space: params themselves or a copy.
template <class C>
Status LayerGroup<C>::FindWeights(const C* params, const C** weights) const {
  const CudnnWeights& map = layers_->weights();
  *weights = params;
  if (map.are_params()) return Status();
  C* space = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(call_.device.Allocate(map.size(), &space));
  *weights = space;
  return map.CopyIn(call_.device, params, space);
}

template <class C>
Status LayerGroup<C>::ComputeForward(const CudnnForward<C>& t,
                                     void* workspace) const {
  const int64_t hidden = call_.model.hidden_size, cell = call_.model.cell_size;
  const C* weights = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindWeights(t.params, &weights));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      call_.cudnn, cudnnRNNForward, call_.handle, layers_->descriptor(),
      t.reserve ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
      call_.batch.lengths(), x_.get(), t.x, y_.get(), t.y, h_.get(),
      State(t.h0, hidden), State(t.final_h, hidden), c_.get(),
      State(t.c0, cell), State(t.final_c, cell), weight_bytes(), weights,
      workspace_bytes_, workspace, t.reserve ? reserve_bytes_ : 0, t.reserve);
  return Status();
}

template <class C>
Status LayerGroup<C>::ComputeBackward(const CudnnBackward<C>& t,
                                      void* workspace) const {
  const int64_t hidden = call_.model.hidden_size, cell = call_.model.cell_size;
  const C* weights = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindWeights(t.params, &weights));
  // cuDNN writes to its reserve, which a further backward pass may need.
  char* reserve = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(call_.device.Allocate(reserve_bytes(), &reserve));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      call_.device.Copy(t.reserve, reserve_bytes(), reserve));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      call_.cudnn, cudnnRNNBackwardData_v8, call_.handle, layers_->descriptor(),
      call_.batch.lengths(), y_.get(), t.y, t.y_grad, x_.get(), t.x_grad,
      h_.get(), State(t.h0, hidden), State(t.final_h_grad, hidden),
      State(t.h0_grad, hidden), c_.get(), State(t.c0, cell),
      State(t.final_c_grad, cell), State(t.c0_grad, cell), weight_bytes(),
      weights, workspace_bytes_, workspace, reserve_bytes_, reserve);
  return ComputeWeightGrads(t, workspace, reserve);
}

template <class C>
Status LayerGroup<C>::ComputeWeightGrads(const CudnnBackward<C>& t,
                                         void* workspace, char* reserve) const {
  const Device& device = call_.device;
  const CudnnWeights& map = layers_->weights();
  C* grads = t.params_grad;
  if (!map.are_params()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(map.size(), &grads));
  }
  // cuDNN adds to the gradients.
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Zero(grads, map.size()));
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      call_.cudnn, cudnnRNNBackwardWeights_v8, call_.handle,
      layers_->descriptor(), CUDNN_WGRAD_MODE_ADD, call_.batch.lengths(),
      x_.get(), t.x, h_.get(), State(t.h0, call_.model.hidden_size), y_.get(),
      t.y, weight_bytes(), grads, workspace_bytes_, workspace, reserve_bytes_,
      reserve);
  return map.are_params() ? Status()
                          : map.CopyOut(device, grads, t.params_grad);
}

template class LayerGroup<float>;
template class LayerGroup<double>;
template class LayerGroup<Half>;

}  // namespace tf_lstm_ops::cuda
