#include "dialects/cudnn_rnn/conversion.h"

#include <limits>

#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;

Status CheckCount(const char* name, int64_t got, int each,
                  const RnnModel& model) {
  if (got % each == 0 && got / each == model.pseudo_layers()) return Status();
  return InvalidArgument("Number of ", name, " must be ", each, " for each of ",
                         model.layers, " layers in ", model.directions,
                         " directions but is ", got);
}

class SizeKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("S", &type_));
    return attributes_.Init(construction, true, false);
  }

  Status Compute(const KernelContext& context) override {
    tf::Tensors inputs;
    Sizes unused;
    RnnModel model;
    ParamsLayout layout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.Inputs(CudnnRNNParamsSize(), &inputs, &unused));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MakeLayout(attributes_, inputs, &model, &layout));
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
  Attributes attributes_;
  TF_DataType type_ = TF_INT32;
};

void RegisterSizeKernel(const char* op, const char* device, TF_DataType type,
                        int priority) {
  const Signature& signature = CudnnRNNParamsSize();
  std::vector<const char*> all;
  all.reserve(signature.inputs.size() + signature.outputs.size());
  for (const Argument& input : signature.inputs) all.push_back(input.name);
  for (const Argument& output : signature.outputs) all.push_back(output.name);
  tf::PrintRegistrationFailure(
      op, tf::RegisterKernel<SizeKernel>(op, device, type, priority, all));
}

}  // namespace

Status MakeLayout(const Attributes& attributes, const tf::Tensors& inputs,
                  RnnModel* model, ParamsLayout* layout) {
  const auto scalar = [&](size_t n) {
    return int64_t{*inputs[n].data<int32_t>()};
  };
  TF_LSTM_OPS_RETURN_IF_ERROR(
      attributes.MakeModel(scalar(0), scalar(1), scalar(2), model));
  return ParamsLayout::Make(*model, layout);
}

Status ConversionAttributes::Init(const KernelConstruction& construction,
                                  bool is_v2) {
  TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr(
      is_v2 ? "num_params_weights" : "num_params", &weights_));
  TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr(
      is_v2 ? "num_params_biases" : "num_params", &biases_));
  return attributes_.Init(construction, is_v2, false);
}

Status ConversionAttributes::Make(const tf::Tensors& inputs,
                                  Conversion* c) const {
  RnnModel model;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      MakeLayout(attributes_, inputs, &model, &c->layout));
  // The lists have the lengths of the attributes, so these sizes fit in memory.
  TF_LSTM_OPS_RETURN_IF_ERROR(
      CheckCount("weights", weights_, c->layout.matrices(), model));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      CheckCount("biases", biases_, c->layout.biases(), model));
  for (int64_t p = 0; p < model.pseudo_layers(); ++p) {
    for (int id = 0; id < c->layout.matrices(); ++id) {
      c->weights.push_back(c->layout.Matrix(p, id));
    }
    for (int id = 0; id < c->layout.biases(); ++id) {
      c->biases.push_back(c->layout.Bias(p, id));
    }
  }
  return Status();
}

Status CheckParts(const char* name, const Conversion::Regions& regions,
                  const std::vector<Tensor>& parts) {
  for (size_t n = 0; n < regions.size(); ++n) {
    if (parts[n].size() == regions[n].size()) continue;
    return InvalidArgument(name, "[", n, "] must have ", regions[n].size(),
                           " elements, ", regions[n].rows, " x ",
                           regions[n].columns, ", but has shape ",
                           parts[n].shape().ToString());
  }
  return Status();
}

Status CheckParams(const Conversion& c, const Tensor& params) {
  if (params.size() == c.layout.size()) return Status();
  return InvalidArgument("params.dim_size(0) != params size: ", params.size(),
                         " vs. ", c.layout.size());
}

void RegisterOwnParamsSize(const char* device, TF_DataType type) {
  RegisterSizeKernel(CudnnRNNParamsSize().op, device, type, 0);
}

void RegisterStockParamsSize(const char* device, TF_DataType type,
                             int priority) {
  RegisterSizeKernel(StockName(CudnnRNNParamsSize()), device, type, priority);
}

}  // namespace tf_lstm_ops::cudnn_rnn
