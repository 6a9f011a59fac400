// Kernels of the ops on the parameter buffer: its size, and the way from and to
// matrices and vectors. They move data and know no arithmetic.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "dialects/cudnn_rnn/model.h"
#include "dialects/cudnn_rnn/signatures.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;

class ParamsKernel : public tf::Kernel {
 protected:
  Status InitModel(const KernelConstruction& construction, bool has_num_proj) {
    return attributes_.Init(construction, has_num_proj, false);
  }

  // Fetches the inputs and makes the model from num_layers, num_units and
  // input_size, the first three.
  Status Begin(const KernelContext& context, const Signature& signature,
               std::vector<Tensor>* inputs, RnnModel* model,
               ParamsLayout* layout) const {
    Sizes unused;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.Inputs(signature, inputs, &unused));
    const auto scalar = [&](size_t n) {
      return int64_t{*(*inputs)[n].data<int32_t>()};
    };
    TF_LSTM_OPS_RETURN_IF_ERROR(
        attributes_.MakeModel(scalar(0), scalar(1), scalar(2), model));
    return ParamsLayout::Make(*model, layout);
  }

 private:
  Attributes attributes_;
};

class SizeKernel : public ParamsKernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("S", &type_));
    return InitModel(construction, true);
  }

  Status Compute(const KernelContext& context) override {
    std::vector<Tensor> inputs;
    RnnModel model;
    ParamsLayout layout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Begin(context, CudnnRNNParamsSize(), &inputs, &model, &layout));
    Tensor size;
    if (type_ == TF_INT32 &&
        layout.size() > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("params size ", layout.size(),
                             " does not fit into int32; use S=int64");
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(0, type_, Shape({1}), &size));
    if (type_ == TF_INT32) {
      *size.data<int32_t>() = static_cast<int32_t>(layout.size());
    } else {
      *size.data<int64_t>() = layout.size();
    }
    return Status();
  }

 private:
  TF_DataType type_ = TF_INT32;
};

// One call of a conversion: its model, and where the weights and biases of the
// canonical lists stand in the buffer, by pseudo-layer, then by linear-layer
// ID.
struct Conversion {
  std::vector<Tensor> inputs;
  RnnModel model;
  ParamsLayout layout;
  std::vector<ParamsLayout::Region> weights, biases;
};

// Version 2 counts weights and biases apart and knows projections.
template <bool kV2>
class ConversionKernel : public ParamsKernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr(
        kV2 ? "num_params_weights" : "num_params", &weights_));
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr(
        kV2 ? "num_params_biases" : "num_params", &biases_));
    return InitModel(construction, kV2);
  }

 protected:
  Status BeginConversion(const KernelContext& context,
                         const Signature& signature, Conversion* c) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Begin(context, signature, &c->inputs, &c->model, &c->layout));
    // The lists are as long as the attributes say: there is memory for as many.
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckCount("weights", weights_, c->layout.matrices(), c->model));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckCount("biases", biases_, c->layout.biases(), c->model));
    for (int64_t p = 0; p < c->model.pseudo_layers(); ++p) {
      for (int id = 0; id < c->layout.matrices(); ++id) {
        c->weights.push_back(c->layout.Matrix(p, id));
      }
      for (int id = 0; id < c->layout.biases(); ++id) {
        c->biases.push_back(c->layout.Bias(p, id));
      }
    }
    return Status();
  }

 private:
  static Status CheckCount(const char* name, int64_t got, int each,
                           const RnnModel& model) {
    if (got % each == 0 && got / each == model.pseudo_layers()) return Status();
    return InvalidArgument("Number of ", name, " must be ", each,
                           " for each of ", model.layers, " layers in ",
                           model.directions, " directions but is ", got);
  }

  int64_t weights_ = 0, biases_ = 0;
};

template <bool kV2, class T>
class ToParamsKernel : public ConversionKernel<kV2> {
 public:
  Status Compute(const KernelContext& context) override {
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->BeginConversion(
        context,
        kV2 ? CudnnRNNCanonicalToParamsV2() : CudnnRNNCanonicalToParams(), &c));
    auto first = static_cast<int>(c.inputs.size());
    std::vector<Tensor> weights, biases;
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
  using Regions = std::vector<ParamsLayout::Region>;

  // Any shape with the right number of elements will do, as in stock.
  static Status Read(const KernelContext& context, const char* name,
                     const Regions& regions, int first,
                     std::vector<Tensor>* parts) {
    for (size_t n = 0; n < regions.size(); ++n) {
      Tensor part;
      TF_LSTM_OPS_RETURN_IF_ERROR(
          context.Input(first + static_cast<int>(n), &part));
      if (part.size() != regions[n].size()) {
        return InvalidArgument(name, "[", n, "] must have ", regions[n].size(),
                               " elements, ", regions[n].rows, " x ",
                               regions[n].columns, ", but has shape ",
                               part.shape().ToString());
      }
      parts->push_back(std::move(part));
    }
    return Status();
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
    Conversion c;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->BeginConversion(
        context,
        kV2 ? CudnnRNNParamsToCanonicalV2() : CudnnRNNParamsToCanonical(), &c));
    const Tensor& params = c.inputs.back();
    if (params.size() != c.layout.size()) {
      return InvalidArgument("params.dim_size(0) != params size: ",
                             params.size(), " vs. ", c.layout.size());
    }
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
  Register<SizeKernel>(CudnnRNNParamsSize(), kType);
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
