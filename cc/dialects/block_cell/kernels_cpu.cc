#include <algorithm>
#include <type_traits>

#include "backends/cpu/layer.h"
#include "backends/cpu/thread_count.h"
#include "dialects/block_cell/for_python.h"
#include "dialects/block_cell/problem.h"
#include "dialects/common/call_cpu.h"
#include "tf/kernel.h"
#include "tf/op.h"

namespace tf_lstm_ops::block_cell {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;

// The base class of the kernels of all ops.
template <class T, const OpVariant& kVariant>
class BlockCellKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kVariant);
  }

 protected:
  using C = typename CpuCall<T>::Compute;

  // Fetches and checks the inputs, allocates the outputs, fills `layer`.
  Status Begin(const KernelContext& context, CpuCall<T>* call,
               LayerDirection<C>* layer) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    const int64_t time = kVariant.sequence ? call->sizes.time : 1;
    const int64_t steps =
        kVariant.sequence ? *call->template Data<int64_t>(kInSeqLenMax) : 1;
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckSeqLenMax(steps, time));
    TF_LSTM_OPS_RETURN_IF_ERROR(call->AllocateAll(context));
    SetLayer(attributes_, MakeSequence(call->sizes.batch, time, steps),
             call->sizes, call, layer);
    layer->config.bfloat16 = std::is_same_v<T, BFloat16>;
    return Status();
  }

  // Returns output n, [T, B, width], whose first `used` elements are written.
  // The others, from seq_len_max on, become zero.
  static T* OutRows(CpuCall<T>* call, size_t n, int64_t used) {
    T* data = call->OutData(n);
    std::fill(data + used, data + call->output_size(n), T{});
    return data;
  }

  int Threads(const KernelContext& context) {
    return cpu::ThreadCount(this->ConfiguredThreads(context));
  }
  bool use_peephole() const { return attributes_.use_peephole; }

 private:
  Attributes attributes_;
};

template <class T, const OpVariant& kVariant>
class ForwardKernel : public BlockCellKernel<T, kVariant> {
 public:
  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kVariant.signature(), this->Threads(context));
    LayerForward<typename CpuCall<T>::Compute> layer;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &layer));
    const int64_t cell = call.sizes.cell, size = layer.sequence.rows() * cell;
    for (int k = 0; k < kMaxSavedActivations; ++k) {
      T* saved = this->OutRows(&call, k, size);
      layer.saved.Set(k, call.SavedOut(saved, size), cell);
    }
    layer.h = call.Out(this->OutRows(&call, kOutputH, size), size);
    layer.h_stride = cell;
    cpu::ComputeForward(layer, PackedSequence(layer.sequence), call.threads);
    call.Finish();
    return Status();
  }
};

// The base class of the kernels of the gradient ops.
template <class T, const OpVariant& kVariant>
class GradKernel : public BlockCellKernel<T, kVariant> {
 protected:
  using C = typename CpuCall<T>::Compute;

  Status BeginGrad(const KernelContext& context, CpuCall<T>* call,
                   LayerBackward<C>* layer) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, call, layer));
    SetOutputsAndGrads(call->sizes, layer->sequence.rows(), call, layer);
    return Status();
  }

  // wci_grad, wcf_grad, wco_grad: outputs [first, first + 3).
  void SetPeepholeGrads(size_t first, CpuCall<T>* call,
                        LayerBackward<C>* layer) const {
    for (size_t n = 0; n < kPeepholes.size(); ++n) {
      if (this->use_peephole()) {
        layer->weights_grad.peephole[kPeepholes[n].gate] = call->Out(first + n);
      } else {
        std::fill_n(call->OutData(first + n), call->output_size(first + n),
                    T{});
      }
    }
  }

  static Status Finish(const LayerBackward<C>& layer, CpuCall<T>* call) {
    cpu::ComputeBackward(layer, PackedSequence(layer.sequence), call->threads);
    call->Finish();
    return Status();
  }
};

template <class T>
class CellGradKernel : public GradKernel<T, kCellGrad> {
 public:
  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kCellGrad.signature(), this->Threads(context));
    LayerBackward<typename CpuCall<T>::Compute> layer;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->BeginGrad(context, &call, &layer));
    layer.c0_grad = {call.Out(0), call.sizes.cell};
    layer.z_grad = call.Out(1);
    this->SetPeepholeGrads(2, &call, &layer);
    return this->Finish(layer, &call);
  }
};

// Gradients of all inputs. The stock ops take the gradients of cs and h, the
// FullGrad ops those of all seven outputs.
template <class T, const OpVariant& kVariant>
class InputGradKernel : public GradKernel<T, kVariant> {
 public:
  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kVariant.signature(), this->Threads(context));
    LayerBackward<typename CpuCall<T>::Compute> layer;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->BeginGrad(context, &call, &layer));
    const Sizes& sizes = call.sizes;
    const int64_t x_size = layer.sequence.rows() * sizes.input;
    layer.x_grad = call.Out(this->OutRows(&call, 0, x_size), x_size);
    layer.c0_grad = {call.Out(1), sizes.cell};
    layer.h0_grad = {call.Out(2), sizes.cell};
    SetMatrices(sizes, call.Out(3), &layer.weights_grad);
    this->SetPeepholeGrads(4, &call, &layer);
    layer.weights_grad.input_bias = call.Out(7);
    return this->Finish(layer, &call);
  }
};

template <class K>
void Register(const OpVariant& variant, TF_DataType type) {
  tf::RegisterKernel<K>(variant.signature().op, "CPU", type);
}

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  Register<ForwardKernel<T, kCell>>(kCell, kType);
  Register<ForwardKernel<T, kBlock>>(kBlock, kType);
  Register<ForwardKernel<T, kBlockV2>>(kBlockV2, kType);
  Register<CellGradKernel<T>>(kCellGrad, kType);
  Register<InputGradKernel<T, kBlockGrad>>(kBlockGrad, kType);
  Register<InputGradKernel<T, kBlockGradV2>>(kBlockGradV2, kType);
  Register<InputGradKernel<T, kCellFullGrad>>(kCellFullGrad, kType);
  Register<InputGradKernel<T, kBlockFullGrad>>(kBlockFullGrad, kType);
  return true;
}

[[maybe_unused]] const bool kDefined[] = {
    tf::DefineOp<&LSTMBlockCell>(),         tf::DefineOp<&LSTMBlockCellGrad>(),
    tf::DefineOp<&LSTMBlockCellFullGrad>(), tf::DefineOp<&BlockLSTM>(),
    tf::DefineOp<&BlockLSTMGrad>(),         tf::DefineOp<&BlockLSTMV2>(),
    tf::DefineOp<&BlockLSTMGradV2>(),       tf::DefineOp<&BlockLSTMFullGrad>(),
};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

// Registers a kernel under a stock name with priority 1. The stock kernel has
// priority 0.
template <class K>
Status RegisterAbove(const char* stock, TF_DataType type) {
  return tf::RegisterKernel<K>(stock, "CPU", type, 1);
}

template <class T>
Status RegisterAboveStock() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      (RegisterAbove<ForwardKernel<T, kCell>>("LSTMBlockCell", kType)));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      RegisterAbove<CellGradKernel<T>>("LSTMBlockCellGrad", kType));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      (RegisterAbove<ForwardKernel<T, kBlock>>("BlockLSTM", kType)));
  return RegisterAbove<InputGradKernel<T, kBlockGrad>>("BlockLSTMGrad", kType);
}

Status OverrideStock() {
  TF_LSTM_OPS_RETURN_IF_ERROR(RegisterAboveStock<float>());
  return RegisterAboveStock<Half>();
}

}  // namespace
}  // namespace tf_lstm_ops::block_cell

const char* tf_lstm_ops_override_stock() {
  // Once: two equal kernels of the same priority would be ambiguous.
  static const tf_lstm_ops::Status status =
      tf_lstm_ops::tf::CatchExceptions(&tf_lstm_ops::block_cell::OverrideStock);
  return status.ok() ? nullptr : status.message().c_str();
}
