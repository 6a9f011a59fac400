// Kernels of CudnnRNNV3 and CudnnRNNBackpropV3 on a Metal device: LSTMs without a projection. All
// other calls of the family have CPU kernels only; tf_lstm_ops/_gpu.py places them there.
//
// reserve_space has the dropout multipliers, [L-1, T, B, D*H], and no elements without dropout.
#include <algorithm>
#include <utility>
#include <vector>

#include "backends/metal/lstm_stack.h"
#include "core/dropout.h"
#include "dialects/common/kernel_metal.h"
#include "dialects/cudnn_rnn/problem.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using metal::LstmStack;
using metal::LstmStackGrads;
using metal::LstmStackResults;
using tf::KernelConstruction;
using tf::KernelContext;

// The arguments that metal::Padding describes.
void AddPadding(const MultiLayerRnn& rnn, MetalCall* call) {
  MetalCall::HostArgument valid = {"valid", {rnn.time, rnn.batch, 1}, {}, {}};
  MetalCall::HostArgument last = {"last", {rnn.time, rnn.batch, 1}, {}, {}};
  MetalCall::HostArgument reversal = {"reversal", {rnn.rows()}, {}, {}};
  for (int64_t t = 0; t < rnn.time; ++t) {
    for (int64_t b = 0; b < rnn.batch; ++b) {
      const int64_t length = rnn.lengths[b];
      valid.numbers.push_back(t < length ? 1 : 0);
      last.numbers.push_back(t == length - 1 ? 1 : 0);
      const int64_t step = t < length ? length - 1 - t : t;
      reversal.indices.push_back(static_cast<int32_t>(step * rnn.batch + b));
    }
  }
  call->host_arguments.push_back(std::move(valid));
  call->host_arguments.push_back(std::move(last));
  if (rnn.model.directions == 2) call->host_arguments.push_back(std::move(reversal));
}

metal::Extents MaskShape(const MultiLayerRnn& rnn) {
  return {rnn.model.layers - 1, rnn.time, rnn.batch, rnn.model.output_size()};
}

int64_t ReserveSize(const MultiLayerRnn& rnn, float dropout) {
  if (!HasDropout(rnn, dropout)) return 0;
  return (rnn.model.layers - 1) * rnn.rows() * rnn.model.output_size();
}

MetalCall::HostArgument MaskArgument(const MultiLayerRnn& rnn, float dropout, uint64_t key) {
  MetalCall::HostArgument argument = {"dropout_mask", MaskShape(rnn), {}, {}};
  argument.numbers.assign(ReserveSize(rnn, dropout), 1);
  const auto mask = MakeDropoutMask(rnn, dropout, key);
  for (int64_t n = 0; n < (rnn.model.layers - 1) * rnn.rows(); ++n) {
    float* row = argument.numbers.data() + n * rnn.model.output_size();
    mask->Apply(n / rnn.rows(), n % rnn.rows(), row, row);
  }
  return argument;
}

// The base class of both kernels.
class LstmStackKernel : public MetalKernel {
 public:
  using MetalKernel::MetalKernel;

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, true, true));
    return MetalKernel::Init(construction);
  }

 protected:
  const Attributes& attributes() const { return attributes_; }

  // Fetches and checks the inputs.
  Status Begin(const KernelContext& context, MetalCall* call, MultiLayerRnn* rnn) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    const auto* lengths = call->Find("sequence_lengths")->data<int32_t>();
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProblem(attributes_, call->shape_of(), lengths, rnn));
    if (rnn->model.cell != CellKind::kLstm || rnn->model.projected()) {
      return MakeStatus(Code::kUnimplemented,
                        "the Metal kernel computes LSTMs without a projection only; call the op in "
                        "tf.device(\"CPU\")");
    }
    if (rnn->has_padding()) AddPadding(*rnn, call);
    rnn->lengths.clear();  // the graph does not depend on them: they are not in its key
    return Status();
  }

  static LstmStack MakeStack(GraphBuilder* b, const MultiLayerRnn& rnn) {
    LstmStack stack = {b->graph(), rnn, 0, 0, 0, 0, {}};
    SetInputs(rnn, b, &stack);
    stack.padding = {b->HostArgument("valid", 1), b->HostArgument("last", 0),
                     b->HostArgument("reversal", 0)};
    return stack;
  }

 private:
  Attributes attributes_;
};

class ForwardKernel : public LstmStackKernel {
 public:
  ForwardKernel() : LstmStackKernel(CudnnRNNV3()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("is_training", &is_training_));
    return LstmStackKernel::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    MetalCall call(signature());
    MultiLayerRnn rnn;
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin(context, &call, &rnn));
    const float dropout = is_training_ ? attributes().dropout : 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(Allocate(context, rnn, dropout, &call));
    if (ReserveSize(rnn, dropout) > 0) {
      call.host_arguments.push_back(
          MaskArgument(rnn, dropout, dropout_keys_.Next(attributes().seed)));
    }
    return Run(context, call, [&](GraphBuilder* b) {
      LstmStack stack = MakeStack(b, rnn);
      stack.dropout_mask = b->HostArgument("dropout_mask", 1);
      stack.dropout = dropout;
      const LstmStackResults results = BuildForward(stack);
      b->Out(0, results.output);
      b->Out(1, results.output_h);
      b->Out(2, results.output_c);
      b->Out(3, is_training_ ? Reshape(stack.dropout_mask, b->output_shape(3)) : 0);
    });
  }

 private:
  Status Allocate(const KernelContext& context, const MultiLayerRnn& rnn, float dropout,
                  MetalCall* call) const {
    for (const Shape& shape : ForwardShapes(rnn, is_training_, ReserveSize(rnn, dropout))) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, shape, type()));
    }
    // In stock TensorFlow host_reserved has the number of the algorithm. Metal has one algorithm,
    // number 0.
    TF_LSTM_OPS_RETURN_IF_ERROR(
        call->Allocate(context, HostReservedShape(kV3, is_training_), TF_INT8));
    const tf::Tensor& host_reserved = call->outputs()[4];
    std::fill_n(host_reserved.data<int8_t>(), host_reserved.size(), int8_t{0});
    return Status();
  }

  bool is_training_ = true;
  DropoutKeys dropout_keys_;
};

class BackwardKernel : public LstmStackKernel {
 public:
  BackwardKernel() : LstmStackKernel(CudnnRNNBackpropV3()) {}

  Status Compute(const KernelContext& context) override {
    MetalCall call(signature());
    MultiLayerRnn rnn;
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin(context, &call, &rnn));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckBackprop(rnn, call.shape_of()));
    const float dropout = attributes().dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserveSize(call.InputShape("reserve_space"), ReserveSize(rnn, dropout)));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, type()));
    return Run(context, call, [&](GraphBuilder* b) {
      LstmStack stack = MakeStack(b, rnn);
      if (HasDropout(rnn, dropout)) {
        stack.dropout_mask = Reshape(b->In("reserve_space"), MaskShape(rnn));
        stack.dropout = dropout;
      }
      const LstmStackGrads grads = BuildBackward(
          stack,
          {b->In("output_backprop"), b->In("output_h_backprop"), b->In("output_c_backprop")});
      b->Out(0, grads.input);
      b->Out(1, grads.input_h);
      b->Out(2, grads.input_c);
      b->Out(3, grads.params);
    });
  }
};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterMetalKernel<ForwardKernel>(CudnnRNNV3().op, {"sequence_lengths", "host_reserved"}),
    RegisterMetalKernel<BackwardKernel>(CudnnRNNBackpropV3().op,
                                        {"sequence_lengths", "host_reserved"})};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
