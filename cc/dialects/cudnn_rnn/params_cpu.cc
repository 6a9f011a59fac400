// CPU kernels of the ops on the parameter buffer. They only copy.
#include <cstring>
#include <vector>

#include "dialects/cudnn_rnn/conversion.h"
#include "dialects/cudnn_rnn/signatures.h"
#include "tf/kernel.h"
#include "tf/op.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;

template <bool kV2>
class ConversionKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kV2);
  }

 protected:
  Status Begin(const KernelContext& context, const Signature& signature,
               tf::Tensors* inputs, Conversion* c) const {
    Sizes unused;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.Inputs(signature, inputs, &unused));
    return attributes_.Make(*inputs, c);
  }

 private:
  ConversionAttributes attributes_;
};

template <bool kV2, class T>
class ToParamsKernel : public ConversionKernel<kV2> {
 public:
  Status Compute(const KernelContext& context) override {
    tf::Tensors inputs;
    std::vector<Tensor> weights, biases;
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(
        context,
        kV2 ? CudnnRNNCanonicalToParamsV2() : CudnnRNNCanonicalToParams(),
        &inputs, &c));
    auto first = static_cast<int>(inputs.size());
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Read(context, "weights", c.weights, first, &weights));
    first += static_cast<int>(c.weights.size());
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Read(context, "biases", c.biases, first, &biases));
    Tensor params;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        0, tf::kDataType<T>, Shape({c.layout.size()}), &params));
    Copy(c.weights, weights, params);
    Copy(c.biases, biases, params);
    return Status();
  }

 private:
  using Regions = Conversion::Regions;

  static Status Read(const KernelContext& context, const char* name,
                     const Regions& regions, int first,
                     std::vector<Tensor>* parts) {
    for (size_t n = 0; n < regions.size(); ++n) {
      parts->emplace_back();
      TF_LSTM_OPS_RETURN_IF_ERROR(
          context.Input(first + static_cast<int>(n), &parts->back()));
    }
    return CheckParts(name, regions, *parts);
  }

  static void Copy(const Regions& regions, const std::vector<Tensor>& parts,
                   const Tensor& params) {
    for (size_t n = 0; n < regions.size(); ++n) {
      std::memcpy(params.template data<T>() + regions[n].offset,
                  parts[n].template data<T>(), regions[n].size() * sizeof(T));
    }
  }
};

template <bool kV2, class T>
class FromParamsKernel : public ConversionKernel<kV2> {
 public:
  Status Compute(const KernelContext& context) override {
    tf::Tensors inputs;
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(
        context,
        kV2 ? CudnnRNNParamsToCanonicalV2() : CudnnRNNParamsToCanonical(),
        &inputs, &c));
    const Tensor& params = inputs.back();
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckParams(c, params));
    int next = 0;
    for (const ParamsLayout::Region& region : c.weights) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Write(context, params, region,
                                        Shape({region.rows, region.columns}),
                                        next++));
    }
    for (const ParamsLayout::Region& region : c.biases) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          Write(context, params, region, Shape({region.columns}), next++));
    }
    return Status();
  }

 private:
  static Status Write(const KernelContext& context, const Tensor& params,
                      const ParamsLayout::Region& region, const Shape& shape,
                      int index) {
    Tensor part;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(index, tf::kDataType<T>, shape, &part));
    std::memcpy(part.template data<T>(),
                params.template data<T>() + region.offset,
                region.size() * sizeof(T));
    return Status();
  }
};

template <class K>
void Register(const Signature& signature, TF_DataType type) {
  tf::RegisterKernel<K>(signature.op, "CPU", type);
  tf::RegisterKernel<K>(StockName(signature), "CPU", type);
}

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  RegisterOwnParamsSize("CPU", kType);
  RegisterStockParamsSize("CPU", kType, 0);
  Register<ToParamsKernel<false, T>>(CudnnRNNCanonicalToParams(), kType);
  Register<ToParamsKernel<true, T>>(CudnnRNNCanonicalToParamsV2(), kType);
  Register<FromParamsKernel<false, T>>(CudnnRNNParamsToCanonical(), kType);
  Register<FromParamsKernel<true, T>>(CudnnRNNParamsToCanonicalV2(), kType);
  return true;
}

[[maybe_unused]] const bool kDefined[] = {
    tf::DefineOp<&CudnnRNNParamsSize>(),
    tf::DefineOp<&CudnnRNNCanonicalToParams>(),
    tf::DefineOp<&CudnnRNNCanonicalToParamsV2>(),
    tf::DefineOp<&CudnnRNNParamsToCanonical>(),
    tf::DefineOp<&CudnnRNNParamsToCanonicalV2>(),
};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
