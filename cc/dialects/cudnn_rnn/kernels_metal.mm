// Kernels of the CudnnRNN ops on a Metal device.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "backends/metal/multi_layer_graph.h"
#include "core/dropout.h"
#include "core/reserve.h"
#include "dialects/common/kernel_metal.h"
#include "dialects/cudnn_rnn/problem.h"
#include "dialects/cudnn_rnn/reserve_metal.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using metal::Concat;
using metal::MultiLayerGraph;
using metal::MultiLayerGraphGrads;
using metal::MultiLayerGraphOutputs;
using metal::Value;
using tf::KernelConstruction;
using tf::KernelContext;

// [T, B, 1]: 1 where a step is valid for a row of the batch, else 0.
MetalCall::HostArgument ValidSteps(const MultiLayerRnn& rnn) {
  MetalCall::HostArgument valid = {"valid", {rnn.time, rnn.batch, 1}, {}};
  for (int64_t t = 0; t < rnn.time; ++t) {
    for (const int64_t length : rnn.lengths) {
      valid.elements.push_back(t < length ? 1 : 0);
    }
  }
  return valid;
}

// [L-1, T, B, D*P]: 1 where the next layer reads an output, 0 where it is
// dropped.
MetalCall::HostArgument DropoutMaskArgument(const MultiLayerRnn& rnn, float dropout, uint64_t key) {
  const int64_t layers = rnn.model.layers - 1, width = rnn.model.output_size();
  MetalCall::HostArgument argument = {"dropout_mask", {layers, rnn.time, rnn.batch, width}, {}};
  argument.elements.assign(layers * rnn.rows() * width, 1);
  const auto mask = MakeDropoutMask(rnn, dropout, key);
  for (int64_t n = 0; n < layers * rnn.rows(); ++n) {
    float* row = argument.elements.data() + n * width;
    mask->Apply(n / rnn.rows(), n % rnn.rows(), row, row);
  }
  for (float& element : argument.elements) element = element > 0 ? 1 : 0;
  return argument;
}

// The header of a reserve (reserve_metal.h).
MetalCall::HostArgument Header(const MultiLayerRnn& rnn, float dropout, TF_DataType type,
                               uint64_t key) {
  const int element_size = type == TF_FLOAT ? 4 : 2;
  uint8_t bytes[sizeof(ReserveHeader)];
  Reserve(rnn, dropout, type, element_size)
      .WriteForeignHeader(key, MetalReserveSize(rnn, dropout), bytes);
  return {"header", {sizeof bytes}, std::vector<float>(std::begin(bytes), std::end(bytes))};
}

// The base class of both kernels. `kIsStock`: whether the kernel is registered for TensorFlow's own
// op.
template <const OpVariant& kVariant, bool kIsStock>
class MultiLayerKernel : public MetalKernel {
 public:
  using MetalKernel::MetalKernel;

  Status Init(const KernelConstruction& construction) override {
    constexpr bool kIsV3 = kVariant.version == 3;
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kIsV3, kIsV3));
    if (kIsStock) TF_LSTM_OPS_RETURN_IF_ERROR(RefuseStockGru(attributes_.cell));
    return MetalKernel::Init(construction);
  }

 protected:
  const Attributes& attributes() const { return attributes_; }

  // Fetches and checks the inputs.
  Status Begin(const KernelContext& context, MetalCall* call, MultiLayerRnn* rnn) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    const tf::Tensor* lengths = call->Find("sequence_lengths");
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProblem(attributes_, call->shape_of(),
                                            lengths ? lengths->data<int32_t>() : nullptr, rnn));
    if (rnn->has_padding()) call->host_arguments.push_back(ValidSteps(*rnn));
    return Status();
  }

  static MultiLayerGraph MakeGraph(GraphBuilder* b, const MultiLayerRnn& rnn, float dropout) {
    MultiLayerGraph graph = {b->graph(), rnn, dropout};
    SetInputs(rnn, b, &graph);
    graph.valid = b->HostArgument("valid", 1);
    return graph;
  }

 private:
  Attributes attributes_;
};

template <const OpVariant& kVariant, bool kIsStock>
class ForwardKernel : public MultiLayerKernel<kVariant, kIsStock> {
 public:
  ForwardKernel() : MultiLayerKernel<kVariant, kIsStock>(kVariant.forward()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("is_training", &is_training_));
    return MultiLayerKernel<kVariant, kIsStock>::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    MetalCall call(this->signature());
    MultiLayerRnn rnn;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &rnn));
    const float dropout = is_training_ ? this->attributes().dropout : 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(Allocate(context, rnn, dropout, &call));
    uint64_t key = 0;  // without dropout
    if (HasDropout(rnn, dropout)) {
      key = dropout_keys_.Next(this->attributes().seed);
      call.host_arguments.push_back(DropoutMaskArgument(rnn, dropout, key));
    }
    if (is_training_) call.host_arguments.push_back(Header(rnn, dropout, this->type(), key));
    return this->Run(context, call, [&](GraphBuilder* b) {
      const MultiLayerGraphOutputs outputs = BuildForward(
          this->MakeGraph(b, rnn, dropout), b->HostArgument("dropout_mask", 1), is_training_);
      b->Out(0, outputs.output);
      b->Out(1, outputs.output_h);
      b->Out(2, outputs.output_c);
      b->Out(3, is_training_ ? Reserve(outputs.reserve, b->HostArgument("header", 0)) : 0);
    });
  }

 private:
  Status Allocate(const KernelContext& context, const MultiLayerRnn& rnn, float dropout,
                  MetalCall* call) const {
    const int64_t reserve_size = MetalReserveSize(rnn, dropout);
    for (const Shape& shape : ForwardShapes(rnn, is_training_, reserve_size)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, shape, this->type()));
    }
    if (kVariant.version == 1) return Status();
    // In stock TensorFlow host_reserved has the number of the algorithm. Metal has one algorithm,
    // number 0.
    TF_LSTM_OPS_RETURN_IF_ERROR(
        call->Allocate(context, HostReservedShape(kVariant, is_training_), TF_INT8));
    const tf::Tensor& host_reserved = call->outputs()[4];
    std::fill_n(host_reserved.data<int8_t>(), host_reserved.size(), int8_t{0});
    return Status();
  }

  // Without steps or rows the reserve has no values.
  static Value Reserve(const Value& values, const Value& header) {
    return values.is_scalar() ? header : Concat({values, header}, 0);
  }

  bool is_training_ = true;
  DropoutKeys dropout_keys_;
};

template <const OpVariant& kVariant, bool kIsStock>
class BackwardKernel : public MultiLayerKernel<kVariant, kIsStock> {
 public:
  BackwardKernel() : MultiLayerKernel<kVariant, kIsStock>(kVariant.backward()) {}

  Status Compute(const KernelContext& context) override {
    MetalCall call(this->signature());
    MultiLayerRnn rnn;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &rnn));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckBackprop(rnn, call.shape_of()));
    const float dropout = this->attributes().dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserve(call.InputShape("reserve_space"), MetalReserveSize(rnn, dropout)));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, this->type()));
    return this->Run(context, call, [&](GraphBuilder* b) {
      const bool is_lstm = IsLstm(rnn.model.cell);
      const MultiLayerGraphGrads grads =
          BuildBackward(this->MakeGraph(b, rnn, dropout), b->In("reserve_space"),
                        {b->In("output_backprop"), b->In("output_h_backprop"),
                         is_lstm ? b->In("output_c_backprop") : 0});
      b->Out(0, grads.input);
      b->Out(1, grads.input_h);
      b->Out(2, grads.input_c);
      b->Out(3, grads.params);
    });
  }

 private:
  // Checks the size only. Reading the header would block until the device has finished.
  static Status CheckReserve(const Shape& shape, int64_t want) {
    if (shape.dim(0) == want) return Status();
    return InvalidArgument("reserve_space must have ", want, " elements but has ", shape.dim(0),
                           "; it must come unchanged from a forward call of the same op on the "
                           "same device with is_training=True and the same attributes and inputs");
  }
};

// Registers a kernel under our own name and under the stock name.
template <template <const OpVariant&, bool> class K, const OpVariant& kVariant>
void RegisterBoth(const Signature& signature, TF_DataType type) {
  std::vector<const char*> host_memory;
  if (kVariant.version == 3) host_memory.push_back("sequence_lengths");
  if (kVariant.version > 1) host_memory.push_back("host_reserved");
  RegisterMetalKernel<K<kVariant, false>>(signature.op, type, host_memory);
  RegisterStockMetalKernel<K<kVariant, true>>(StockName(signature), type, host_memory);
}

template <const OpVariant& kVariant>
void RegisterVariant(TF_DataType type) {
  RegisterBoth<ForwardKernel, kVariant>(kVariant.forward(), type);
  RegisterBoth<BackwardKernel, kVariant>(kVariant.backward(), type);
}

bool RegisterAll(TF_DataType type) {
  RegisterVariant<kV1>(type);
  RegisterVariant<kV2>(type);
  RegisterVariant<kV3>(type);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterAll(TF_FLOAT), RegisterAll(TF_HALF),
                                             metal::HasBFloat16() && RegisterAll(TF_BFLOAT16)};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
