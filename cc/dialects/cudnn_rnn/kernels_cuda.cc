#include <algorithm>
#include <vector>

#include "backends/cuda/fused/tensors.h"
#include "backends/cuda/multi_layer/choose_algorithm.h"
#include "backends/cuda/multi_layer/multi_layer.h"
#include "core/dropout.h"
#include "core/reserve.h"
#include "dialects/common/call_cuda.h"
#include "dialects/cudnn_rnn/dropout_mask.h"
#include "dialects/cudnn_rnn/problem.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using cuda::Algorithm;
using cuda::MultiLayerAlgorithm;
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
    Algorithm algorithm = Algorithm::kFusedSteps;
    TF_LSTM_OPS_RETURN_IF_ERROR(cuda::ChooseAlgorithm(
        call.device(), rnn, mask.get(), is_training_, t, &algorithm));
    const auto implementation =
        MultiLayerAlgorithm<T>::Make(rnn, mask.get(), algorithm);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        implementation->Begin(call.device(), is_training_));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Allocate(context, rnn, implementation->reserve_size(), &call));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        AllocateHostReserved(context, algorithm, &call));
    SetOutputs(rnn, &call, &t);
    if (is_training_) {
      t.reserve = call.Out(3);
      TF_LSTM_OPS_RETURN_IF_ERROR(WriteHeader(call, rnn, dropout, key));
    }
    return implementation->ComputeForward(t);
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
    return is_training_ ? Status() : call->ZeroOutput(3);
  }

  // As in stock TensorFlow, host_reserved has the number of the algorithm, then
  // a flag. The flag has no meaning here.
  Status AllocateHostReserved(const KernelContext& context, Algorithm algorithm,
                              CudaCall<T>* call) const {
    if (kVariant.version == 1) return Status();
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(
        context, HostReservedShape(kVariant, is_training_), TF_INT8));
    auto* host_reserved = call->template Out<int8_t>(4);
    std::fill_n(host_reserved, call->output_size(4), int8_t{0});
    host_reserved[0] = static_cast<int8_t>(algorithm);
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
    Algorithm algorithm = Algorithm::kFusedSteps;
    TF_LSTM_OPS_RETURN_IF_ERROR(FindAlgorithm(call, &algorithm));
    const auto implementation =
        MultiLayerAlgorithm<T>::Make(rnn, mask.get(), algorithm);
    TF_LSTM_OPS_RETURN_IF_ERROR(implementation->Begin(call.device(), true));
    const int64_t size = call.InputShape("reserve_space").dim(0);
    if (size != implementation->reserve_size()) {
      return RefuseReserve("must have ", implementation->reserve_size(),
                           " elements but has ", size);
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    MultiLayerBackward<T> t = {};
    SetInputs(rnn, &call, &t);
    SetGrads(rnn, &call, &t);
    t.reserve = call.In("reserve_space");
    if (!IsLstm(rnn.model.cell)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.ZeroOutput(2));
    }
    return implementation->ComputeBackward(t);
  }

 private:
  // Finds the algorithm of the forward pass: from host_reserved, or in version
  // 1 from the size of the reserve. The host knows both without synchronising
  // with the device.
  static Status FindAlgorithm(const CudaCall<T>& call, Algorithm* algorithm) {
    if (kVariant.version > 1) {
      return ReadAlgorithm(*call.Find("host_reserved"), algorithm);
    }
    const int64_t size = call.InputShape("reserve_space").dim(0);
    if (cuda::AlgorithmOfSize(size, algorithm)) return Status();
    return RefuseReserve("has ", size, " elements, as no algorithm leaves it");
  }

  static Status ReadAlgorithm(const tf::Tensor& host_reserved,
                              Algorithm* algorithm) {
    const int first =
        host_reserved.size() > 0 ? *host_reserved.data<int8_t>() : -1;
    if (first < 0 || first >= cuda::kAlgorithmCount) {
      return InvalidArgument(
          "host_reserved must begin with the number of an algorithm, 0 to ",
          cuda::kAlgorithmCount - 1, ", but has ", host_reserved.size(),
          " elements, the first being ", first);
    }
    *algorithm = static_cast<Algorithm>(first);
    return Status();
  }

  template <class... Parts>
  static Status RefuseReserve(const Parts&... parts) {
    return InvalidArgument(
        "reserve_space ", parts...,
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
