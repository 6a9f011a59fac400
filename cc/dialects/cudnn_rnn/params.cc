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

// The weights and biases of a model in canonical order: by pseudo-layer, then
// by linear-layer ID.
std::vector<ParamsLayout::Region> Matrices(const RnnModel& model,
                                           const ParamsLayout& layout) {
  std::vector<ParamsLayout::Region> regions;
  for (int64_t p = 0; p < model.pseudo_layers(); ++p) {
    for (int id = 0; id < layout.matrices(); ++id) {
      regions.push_back(layout.Matrix(p, id));
    }
  }
  return regions;
}

std::vector<ParamsLayout::Region> Biases(const RnnModel& model,
                                         const ParamsLayout& layout) {
  std::vector<ParamsLayout::Region> regions;
  for (int64_t p = 0; p < model.pseudo_layers(); ++p) {
    for (int id = 0; id < layout.biases(); ++id) {
      regions.push_back(layout.Bias(p, id));
    }
  }
  return regions;
}

// The conversions in both directions; version 2 counts weights and biases apart
// and knows projections.
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
  Status CheckCounts(const RnnModel& model, const ParamsLayout& layout) const {
    const auto check = [&](const char* name, int64_t got, int each) {
      if (got % each == 0 && got / each == model.pseudo_layers()) {
        return Status();
      }
      return InvalidArgument("Number of ", name, " must be ", each,
                             " for each of ", model.layers, " layers in ",
                             model.directions, " directions but is ", got);
    };
    TF_LSTM_OPS_RETURN_IF_ERROR(check("weights", weights_, layout.matrices()));
    return check("biases", biases_, layout.biases());
  }

  int64_t weights_ = 0, biases_ = 0;
};

template <bool kV2, class T>
class ToParamsKernel : public ConversionKernel<kV2> {
 public:
  Status Compute(const KernelContext& context) override {
    const Signature& signature =
        kV2 ? CudnnRNNCanonicalToParamsV2() : CudnnRNNCanonicalToParams();
    std::vector<Tensor> inputs;
    RnnModel model;
    ParamsLayout layout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->Begin(context, signature, &inputs, &model, &layout));
    TF_LSTM_OPS_RETURN_IF_ERROR(this->CheckCounts(model, layout));
    const auto matrices = Matrices(model, layout);
    const auto biases = Biases(model, layout);
    auto first = static_cast<int>(inputs.size());
    std::vector<Tensor> parts;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Read(context, "weights", matrices, first, &parts));
    first += static_cast<int>(matrices.size());
    TF_LSTM_OPS_RETURN_IF_ERROR(Read(context, "biases", biases, first, &parts));
    Tensor params;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        0, tf::kDataType<T>, Shape({layout.size()}), &params));
    for (size_t n = 0; n < parts.size(); ++n) {
      const ParamsLayout::Region& region =
          n < matrices.size() ? matrices[n] : biases[n - matrices.size()];
      std::memcpy(params.template data<T>() + region.offset,
                  parts[n].template data<T>(), region.size() * sizeof(T));
    }
    return Status();
  }

 private:
  // Any shape with the right number of elements will do, as in stock.
  static Status Read(const KernelContext& context, const char* name,
                     const std::vector<ParamsLayout::Region>& regions,
                     int first, std::vector<Tensor>* parts) {
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
};

template <bool kV2, class T>
class FromParamsKernel : public ConversionKernel<kV2> {
 public:
  Status Compute(const KernelContext& context) override {
    const Signature& signature =
        kV2 ? CudnnRNNParamsToCanonicalV2() : CudnnRNNParamsToCanonical();
    std::vector<Tensor> inputs;
    RnnModel model;
    ParamsLayout layout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->Begin(context, signature, &inputs, &model, &layout));
    TF_LSTM_OPS_RETURN_IF_ERROR(this->CheckCounts(model, layout));
    const Tensor& params = inputs.back();
    if (params.size() != layout.size()) {
      return InvalidArgument("params.dim_size(0) != params size: ",
                             params.size(), " vs. ", layout.size());
    }
    int next = 0;
    for (const ParamsLayout::Region& region : Matrices(model, layout)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Write(context, params, region,
                                        Shape({region.rows, region.columns}),
                                        next++));
    }
    for (const ParamsLayout::Region& region : Biases(model, layout)) {
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
