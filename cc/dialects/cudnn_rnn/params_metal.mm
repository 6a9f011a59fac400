// Kernels of the ops on the parameter buffer on a Metal device.
#include <utility>
#include <vector>

#include "dialects/common/kernel_metal.h"
#include "dialects/cudnn_rnn/conversion.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using metal::Concat;
using metal::Value;
using metal::Values;
using tf::KernelConstruction;
using tf::KernelContext;

template <bool kV2>
class ConversionKernel : public MetalKernel {
 public:
  using MetalKernel::MetalKernel;

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kV2));
    return MetalKernel::Init(construction);
  }

 protected:
  Status Begin(const KernelContext& context, MetalCall* call, Conversion* c) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    return attributes_.Make(call->inputs, c);
  }

  // The regions of the weights, then of the biases.
  static Conversion::Regions AllRegions(const Conversion& c) {
    Conversion::Regions all = c.weights;
    all.insert(all.end(), c.biases.begin(), c.biases.end());
    return all;
  }

 private:
  ConversionAttributes attributes_;
};

template <bool kV2>
class ToParamsKernel : public ConversionKernel<kV2> {
 public:
  ToParamsKernel()
      : ConversionKernel<kV2>(kV2 ? CudnnRNNCanonicalToParamsV2() : CudnnRNNCanonicalToParams()) {}

  Status Compute(const KernelContext& context) override {
    MetalCall call(this->signature());
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &c));
    const size_t first = call.inputs.size();
    TF_LSTM_OPS_RETURN_IF_ERROR(FetchList(context, "weights", c.weights, &call));
    TF_LSTM_OPS_RETURN_IF_ERROR(FetchList(context, "biases", c.biases, &call));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, Shape({c.layout.size()}), this->type()));
    return this->Run(context, call, [&](GraphBuilder* b) {
      // The parts are in the order of their regions, which are consecutive.
      Values parts;
      for (size_t n = first; n < call.inputs.size(); ++n) {
        const int64_t size = call.inputs[n].size();
        if (size > 0) parts.push_back(Reshape(b->In(n), {size}));
      }
      b->Out(0, Concat(parts, 0));
    });
  }

 private:
  // Appends a list to the inputs.
  static Status FetchList(const KernelContext& context, const char* name,
                          const Conversion::Regions& regions, MetalCall* call) {
    std::vector<tf::Tensor> parts(regions.size());
    for (tf::Tensor& part : parts) {
      const auto index = static_cast<int>(call->inputs.size());
      TF_LSTM_OPS_RETURN_IF_ERROR(
          context.Input(index + static_cast<int>(&part - parts.data()), &part));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckParts(name, regions, parts));
    for (tf::Tensor& part : parts) call->inputs.push_back(std::move(part));
    return Status();
  }
};

template <bool kV2>
class FromParamsKernel : public ConversionKernel<kV2> {
 public:
  FromParamsKernel()
      : ConversionKernel<kV2>(kV2 ? CudnnRNNParamsToCanonicalV2() : CudnnRNNParamsToCanonical()) {}

  Status Compute(const KernelContext& context) override {
    MetalCall call(this->signature());
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &c));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckParams(c, *call.Find("params")));
    for (const ParamsLayout::Region& region : c.weights) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          call.Allocate(context, Shape({region.rows, region.columns}), this->type()));
    }
    for (const ParamsLayout::Region& region : c.biases) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, Shape({region.columns}), this->type()));
    }
    return this->Run(context, call, [&](GraphBuilder* b) {
      const Value params = b->In("params");
      int next = 0;
      for (const ParamsLayout::Region& region : this->AllRegions(c)) {
        b->Out(next,
               Reshape(Slice(params, 0, region.offset, region.size()), b->output_shape(next)));
        ++next;
      }
    });
  }
};

template <class K>
void RegisterBoth(const Signature& signature, TF_DataType type) {
  const std::vector<const char*> host_memory = {"num_layers", "num_units", "input_size"};
  RegisterMetalKernel<K>(signature.op, type, host_memory);
  RegisterStockMetalKernel<K>(StockName(signature), type, host_memory);
}

bool RegisterAll(TF_DataType type) {
  RegisterOwnParamsSize("GPU", type);
  StockKernels().push_back([type] {
    RegisterStockParamsSize("GPU", type, 1);
    return Status();
  });
  RegisterBoth<ToParamsKernel<false>>(CudnnRNNCanonicalToParams(), type);
  RegisterBoth<ToParamsKernel<true>>(CudnnRNNCanonicalToParamsV2(), type);
  RegisterBoth<FromParamsKernel<false>>(CudnnRNNParamsToCanonical(), type);
  RegisterBoth<FromParamsKernel<true>>(CudnnRNNParamsToCanonicalV2(), type);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterAll(TF_FLOAT), RegisterAll(TF_HALF),
                                             metal::HasBFloat16() && RegisterAll(TF_BFLOAT16)};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
