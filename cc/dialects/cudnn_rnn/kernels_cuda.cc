#include <algorithm>
#include <vector>

#include "backends/cuda/cudnn/rnn.h"
#include "dialects/common/call_cuda.h"
#include "dialects/cudnn_rnn/problem.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using cuda::CudnnRnn;
using tf::KernelConstruction;
using tf::KernelContext;

// Fetches and checks the inputs.
template <class T>
Status Begin(const KernelContext& context, const Attributes& attributes,
             CudaCall<T>* call, MultiLayerRnn* rnn) {
  TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
  return MakeProblem(attributes, call->shape_of(),
                     call->template Data<int32_t>("sequence_lengths"), rnn);
}

// cuDNN's own dropout has other masks than core/dropout_rule.h, which second
// derivatives need.
Status RefuseDropout(const MultiLayerRnn& rnn, float dropout) {
  if (!HasDropout(rnn, dropout)) return Status();
  return MakeStatus(
      Code::kUnimplemented,
      "tf_lstm_ops: dropout between layers on CUDA needs "
      "tf_lstm_ops.raw_ops or a layer of tf_lstm_ops.keras, which "
      "call TensorFlow's own op");
}

template <class T, const OpVariant& kVariant>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("is_training", &is_training_));
    return attributes_.Init(construction, kVariant.version == 3,
                            kVariant.version == 3);
  }

  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kVariant.forward());
    MultiLayerRnn rnn;
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin(context, attributes_, &call, &rnn));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        RefuseDropout(rnn, is_training_ ? attributes_.dropout : 0));
    CudnnRnn<T> cudnn(call.device(), rnn);
    TF_LSTM_OPS_RETURN_IF_ERROR(cudnn.Begin(is_training_));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Allocate(context, rnn, cudnn.reserve_size(), &call));
    MultiLayerForward<T> t = {};
    SetInputs(rnn, &call, &t);
    SetOutputs(rnn, &call, &t);
    if (is_training_) t.reserve = call.Out(3);
    return cudnn.ComputeForward(t);
  }

 private:
  Status Allocate(const KernelContext& context, const MultiLayerRnn& rnn,
                  int64_t reserve_size, CudaCall<T>* call) const {
    for (const Shape& shape : ForwardShapes(rnn, is_training_, reserve_size)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, shape));
    }
    if (!IsLstm(rnn.model.cell)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->ZeroOutput(2));
    }
    if (!is_training_) TF_LSTM_OPS_RETURN_IF_ERROR(call->ZeroOutput(3));
    if (kVariant.version == 1) return Status();
    // As in stock TensorFlow: the number of the algorithm, 0 for the standard
    // one, then a flag.
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(
        context, HostReservedShape(kVariant, is_training_), TF_INT8));
    std::fill_n(call->template Out<int8_t>(4), call->output_size(4), int8_t{0});
    return Status();
  }

  Attributes attributes_;
  bool is_training_ = true;
};

template <class T, const OpVariant& kVariant>
class BackwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kVariant.version == 3,
                            kVariant.version == 3);
  }

  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kVariant.backward());
    MultiLayerRnn rnn;
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin(context, attributes_, &call, &rnn));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckBackprop(rnn, call.shape_of()));
    TF_LSTM_OPS_RETURN_IF_ERROR(RefuseDropout(rnn, attributes_.dropout));
    CudnnRnn<T> cudnn(call.device(), rnn);
    TF_LSTM_OPS_RETURN_IF_ERROR(cudnn.Begin(/*is_training=*/true));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckReserveSize(
        call.InputShape("reserve_space"), cudnn.reserve_size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    MultiLayerBackward<T> t = {};
    SetInputs(rnn, &call, &t);
    SetGrads(rnn, &call, &t);
    t.reserve = call.In("reserve_space");
    if (!IsLstm(rnn.model.cell)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.ZeroOutput(2));
    }
    return cudnn.ComputeBackward(t);
  }

 private:
  Attributes attributes_;
};

template <class T, const OpVariant& kVariant>
void RegisterVariant() {
  std::vector<const char*> host_memory;
  if (kVariant.version == 3) host_memory.push_back("sequence_lengths");
  if (kVariant.version > 1) host_memory.push_back("host_reserved");
  constexpr TF_DataType kType = tf::kDataType<T>;
  RegisterCudaKernel<ForwardKernel<T, kVariant>>(kVariant.forward().op, kType,
                                                 host_memory);
  RegisterCudaKernel<BackwardKernel<T, kVariant>>(kVariant.backward().op, kType,
                                                  host_memory);
}

template <class T>
bool RegisterAll() {
  RegisterVariant<T, kV1>();
  RegisterVariant<T, kV2>();
  RegisterVariant<T, kV3>();
  return true;
}

// Without bfloat16, which cuDNN's RNNs do not support.
[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>()};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
