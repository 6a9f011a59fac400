#include <algorithm>
#include <vector>

#include "backends/cuda/fused/tensors.h"
#include "backends/cuda/multi_layer/choice.h"
#include "backends/cuda/multi_layer/multi_layer.h"
#include "core/dropout.h"
#include "core/reserve.h"
#include "dialects/common/call_cuda.h"
#include "dialects/cudnn_rnn/dropout_mask.h"
#include "dialects/cudnn_rnn/problem.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using cuda::Stack;
using cuda::Way;
using tf::KernelConstruction;
using tf::KernelContext;

// The key of a dropout mask is read from the reserve, in device memory.
constexpr uint64_t kKeyInReserve = 0;

// Fetches and checks the inputs.
template <class T>
Status Begin(const KernelContext& context, const Attributes& attributes,
             CudaCall<T>* call, MultiLayerRnn* rnn) {
  TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
  return MakeProblem(attributes, call->shape_of(),
                     call->template Data<int32_t>("sequence_lengths"), rnn);
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
    const float dropout = is_training_ ? attributes_.dropout : 0;
    const uint64_t key =
        HasDropout(rnn, dropout) ? dropout_keys_.Next(attributes_.seed) : 0;
    const auto mask = MakeDropoutMask(rnn, dropout, kKeyInReserve);
    MultiLayerForward<T> t = {};
    SetInputs(rnn, &call, &t);
    Way way;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cuda::ChooseWay(call.device(), rnn, mask.get(), is_training_, t, &way));
    const auto stack = Stack<T>::Make(rnn, mask.get(), way);
    TF_LSTM_OPS_RETURN_IF_ERROR(stack->Begin(call.device(), is_training_));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Allocate(context, rnn, stack->reserve_size(), way, &call));
    SetOutputs(rnn, &call, &t);
    if (is_training_) {
      t.reserve = call.Out(3);
      TF_LSTM_OPS_RETURN_IF_ERROR(WriteHeader(call, rnn, dropout, key));
    }
    return stack->Forward(t);
  }

 private:
  Status Allocate(const KernelContext& context, const MultiLayerRnn& rnn,
                  int64_t reserve_size, Way way, CudaCall<T>* call) const {
    for (const Shape& shape : ForwardShapes(rnn, is_training_, reserve_size)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, shape));
    }
    if (!IsLstm(rnn.model.cell)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->ZeroOutput(2));
    }
    if (!is_training_) TF_LSTM_OPS_RETURN_IF_ERROR(call->ZeroOutput(3));
    if (kVariant.version == 1) return Status();
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(
        context, HostReservedShape(kVariant, is_training_), TF_INT8));
    // As in stock TensorFlow: the number of the algorithm, then a flag, which
    // has no meaning here.
    auto* host_reserved = call->template Out<int8_t>(4);
    std::fill_n(host_reserved, call->output_size(4), int8_t{0});
    host_reserved[0] = static_cast<int8_t>(way);
    return Status();
  }

  static Status WriteHeader(const CudaCall<T>& call, const MultiLayerRnn& rnn,
                            float dropout, uint64_t key) {
    uint8_t header[sizeof(ReserveHeader)];
    Reserve(rnn, dropout, tf::kDataType<T>, sizeof(T))
        .WriteForeignHeader(key, call.output_size(3), header);
    return cuda::CopyFromHost(call.device(), header, sizeof header,
                              reinterpret_cast<uint8_t*>(call.Out(3)));
  }

  Attributes attributes_;
  bool is_training_ = true;
  DropoutKeys dropout_keys_;
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
    const auto mask = MakeDropoutMask(rnn, attributes_.dropout, kKeyInReserve);
    Way way = cuda::ChosenWay<T>(call.device(), rnn, mask.get());
    if (kVariant.version > 1) {
      TF_LSTM_OPS_RETURN_IF_ERROR(ReadWay(*call.Find("host_reserved"), &way));
    }
    const auto stack = Stack<T>::Make(rnn, mask.get(), way);
    TF_LSTM_OPS_RETURN_IF_ERROR(stack->Begin(call.device(), true));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserve(call.InputShape("reserve_space"), stack->reserve_size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    MultiLayerBackward<T> t = {};
    SetInputs(rnn, &call, &t);
    SetGrads(rnn, &call, &t);
    t.reserve = call.In("reserve_space");
    if (!IsLstm(rnn.model.cell)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.ZeroOutput(2));
    }
    return stack->Backward(t);
  }

 private:
  // The algorithm of the forward pass.
  static Status ReadWay(const tf::Tensor& host_reserved, Way* way) {
    const int first =
        host_reserved.size() > 0 ? *host_reserved.data<int8_t>() : -1;
    if (first < 0 || first > static_cast<int>(Way::kOwnKernels)) {
      return InvalidArgument(
          "host_reserved must begin with the number of an algorithm, 0 to ",
          static_cast<int>(Way::kOwnKernels), ", but has ",
          host_reserved.size(), " elements, the first being ", first);
    }
    *way = static_cast<Way>(first);
    return Status();
  }

  // Its size is what can be checked without waiting for the device.
  static Status CheckReserve(const Shape& shape, int64_t want) {
    if (shape.dim(0) == want) return Status();
    return InvalidArgument(
        "reserve_space must have ", want, " elements but has ", shape.dim(0),
        "; it must come unchanged from a forward call of the same op on the "
        "same device with is_training=True and the same attributes and inputs");
  }

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
  RegisterDropoutMask<T>("GPU");
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
