// Kernels of the ops on the parameter buffer: copies in device memory.
#include <vector>

#include "dialects/common/call_cuda.h"
#include "dialects/cudnn_rnn/conversion.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;

template <bool kV2, class T>
class ConversionKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kV2);
  }

 protected:
  Status Begin(const KernelContext& context, CudaCall<T>* call,
               Conversion* c) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    return attributes_.Make(call->inputs, c);
  }

 private:
  ConversionAttributes attributes_;
};

template <bool kV2, class T>
class ToParamsKernel : public ConversionKernel<kV2, T> {
 public:
  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kV2 ? CudnnRNNCanonicalToParamsV2()
                         : CudnnRNNCanonicalToParams());
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &c));
    std::vector<tf::Tensor> weights, biases;
    auto first = static_cast<int>(call.inputs.size());
    TF_LSTM_OPS_RETURN_IF_ERROR(
        FetchParts(context, "weights", c.weights, first, &weights));
    first += static_cast<int>(c.weights.size());
    TF_LSTM_OPS_RETURN_IF_ERROR(
        FetchParts(context, "biases", c.biases, first, &biases));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        call.Allocate(context, Shape({c.layout.size()})));
    TF_LSTM_OPS_RETURN_IF_ERROR(CopyParts(call, c.weights, weights));
    return CopyParts(call, c.biases, biases);
  }

 private:
  using Regions = Conversion::Regions;

  static Status FetchParts(const KernelContext& context, const char* name,
                           const Regions& regions, int first,
                           std::vector<tf::Tensor>* parts) {
    parts->resize(regions.size());
    for (tf::Tensor& part : *parts) {
      TF_LSTM_OPS_RETURN_IF_ERROR(context.Input(first++, &part));
    }
    return CheckParts(name, regions, *parts);
  }

  static Status CopyParts(const CudaCall<T>& call, const Regions& regions,
                          const std::vector<tf::Tensor>& parts) {
    for (size_t n = 0; n < regions.size(); ++n) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          call.device().Copy(parts[n].template data<T>(), regions[n].size(),
                             call.Out(0) + regions[n].offset));
    }
    return Status();
  }
};

template <bool kV2, class T>
class FromParamsKernel : public ConversionKernel<kV2, T> {
 public:
  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kV2 ? CudnnRNNParamsToCanonicalV2()
                         : CudnnRNNParamsToCanonical());
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &c));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckParams(c, *call.Find("params")));
    size_t output = 0;
    for (const ParamsLayout::Region& region : c.weights) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          call.Allocate(context, Shape({region.rows, region.columns})));
      TF_LSTM_OPS_RETURN_IF_ERROR(CopyPart(call, region, output++));
    }
    for (const ParamsLayout::Region& region : c.biases) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          call.Allocate(context, Shape({region.columns})));
      TF_LSTM_OPS_RETURN_IF_ERROR(CopyPart(call, region, output++));
    }
    return Status();
  }

 private:
  static Status CopyPart(const CudaCall<T>& call,
                         const ParamsLayout::Region& region, size_t output) {
    return call.device().Copy(call.In("params") + region.offset, region.size(),
                              call.Out(output));
  }
};

template <class K>
void Register(const Signature& signature, TF_DataType type) {
  RegisterCudaKernel<K>(signature.op, type,
                        {"num_layers", "num_units", "input_size"});
}

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  RegisterOwnParamsSize("GPU", kType);
  Register<ToParamsKernel<false, T>>(CudnnRNNCanonicalToParams(), kType);
  Register<ToParamsKernel<true, T>>(CudnnRNNCanonicalToParamsV2(), kType);
  Register<FromParamsKernel<false, T>>(CudnnRNNParamsToCanonical(), kType);
  Register<FromParamsKernel<true, T>>(CudnnRNNParamsToCanonicalV2(), kType);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
