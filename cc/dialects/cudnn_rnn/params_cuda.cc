// Kernels of the ops on the parameter buffer: copies on the device.
#include <vector>

#include "dialects/common/call_cuda.h"
#include "dialects/cudnn_rnn/conversion.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cuda {
namespace {

using cudnn_rnn::Conversion;
using tf::KernelConstruction;
using tf::KernelContext;

template <bool kV2>
class ConversionKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kV2);
  }

 protected:
  Status Begin(const KernelContext& context, Call* call, Conversion* c) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Begin(context));
    return attributes_.Make(call->inputs, c);
  }

 private:
  cudnn_rnn::ConversionAttributes attributes_;
};

template <bool kV2, class T>
class ToParamsKernel : public ConversionKernel<kV2> {
 public:
  Status Compute(const KernelContext& context) override {
    Call call(kV2 ? cudnn_rnn::CudnnRNNCanonicalToParamsV2()
                  : cudnn_rnn::CudnnRNNCanonicalToParams());
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &c));
    std::vector<tf::Tensor> weights, biases;
    auto first = static_cast<int>(call.inputs.size());
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Fetch(context, "weights", c.weights, first, &weights));
    first += static_cast<int>(c.weights.size());
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Fetch(context, "biases", c.biases, first, &biases));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        call.Allocate(context, tf::kDataType<T>, Shape({c.layout.size()})));
    TF_LSTM_OPS_RETURN_IF_ERROR(Copy(call, c.weights, weights));
    return Copy(call, c.biases, biases);
  }

 private:
  using Regions = Conversion::Regions;

  static Status Fetch(const KernelContext& context, const char* name,
                      const Regions& regions, int first,
                      std::vector<tf::Tensor>* parts) {
    parts->resize(regions.size());
    for (tf::Tensor& part : *parts) {
      TF_LSTM_OPS_RETURN_IF_ERROR(context.Input(first++, &part));
    }
    return cudnn_rnn::CheckParts(name, regions, *parts);
  }

  static Status Copy(const Call& call, const Regions& regions,
                     const std::vector<tf::Tensor>& parts) {
    for (size_t n = 0; n < regions.size(); ++n) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          call.device().Copy(parts[n].template data<T>(), regions[n].size(),
                             call.Out<T>(0) + regions[n].offset));
    }
    return Status();
  }
};

template <bool kV2, class T>
class FromParamsKernel : public ConversionKernel<kV2> {
 public:
  Status Compute(const KernelContext& context) override {
    Call call(kV2 ? cudnn_rnn::CudnnRNNParamsToCanonicalV2()
                  : cudnn_rnn::CudnnRNNParamsToCanonical());
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &c));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cudnn_rnn::CheckParams(c, *call.Find("params")));
    size_t next = 0;
    for (const ParamsLayout::Region& region : c.weights) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Put(context, region,
                                      Shape({region.rows, region.columns}),
                                      next++, &call));
    }
    for (const ParamsLayout::Region& region : c.biases) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          Put(context, region, Shape({region.columns}), next++, &call));
    }
    return Status();
  }

 private:
  static Status Put(const KernelContext& context,
                    const ParamsLayout::Region& region, const Shape& shape,
                    size_t output, Call* call) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        call->Allocate(context, tf::kDataType<T>, shape));
    return call->device().Copy(call->In<T>("params") + region.offset,
                               region.size(), call->Out<T>(output));
  }
};

template <class K>
void Register(const Signature& signature, TF_DataType type) {
  cuda::Register<K>(signature.op, type,
                    {"num_layers", "num_units", "input_size"});
}

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  cudnn_rnn::RegisterOwnParamsSize("GPU", kType);
  Register<ToParamsKernel<false, T>>(cudnn_rnn::CudnnRNNCanonicalToParams(),
                                     kType);
  Register<ToParamsKernel<true, T>>(cudnn_rnn::CudnnRNNCanonicalToParamsV2(),
                                    kType);
  Register<FromParamsKernel<false, T>>(cudnn_rnn::CudnnRNNParamsToCanonical(),
                                       kType);
  Register<FromParamsKernel<true, T>>(cudnn_rnn::CudnnRNNParamsToCanonicalV2(),
                                      kType);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cuda
