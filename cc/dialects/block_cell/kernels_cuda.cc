#include <vector>

#include "backends/cuda/layer/layer.h"
#include "dialects/block_cell/problem.h"
#include "dialects/common/call_cuda.h"

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
  // Fetches and checks the inputs, allocates the outputs, fills `layer`.
  Status Begin(const KernelContext& context, CudaCall<T>* call,
               LayerDirection<T>* layer) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    const int64_t time = kVariant.sequence ? call->sizes.time : 1;
    const int64_t steps =
        kVariant.sequence ? *call->template Data<int64_t>(kInSeqLenMax) : 1;
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckSeqLenMax(steps, time));
    SetLayer(attributes_, MakeSequence(call->sizes.batch, time, steps),
             call->sizes, call, layer);
    return call->AllocateAll(context);
  }

  // Sets `out` to output n, [T, B, width], whose rows from seq_len_max on are
  // zero.
  static Status OutRows(const CudaCall<T>& call, const Sequence& sequence,
                        size_t n, T** out) {
    *out = call.Out(n);
    if (sequence.steps == sequence.time || !*out) return Status();
    const int64_t step = call.output_size(n) / sequence.time;
    return call.device().Zero(*out + sequence.steps * step,
                              (sequence.time - sequence.steps) * step);
  }

  bool use_peephole() const { return attributes_.use_peephole; }

 private:
  Attributes attributes_;
};

template <class T, const OpVariant& kVariant>
class ForwardKernel : public BlockCellKernel<T, kVariant> {
 public:
  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kVariant.signature());
    LayerForward<T> layer;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &layer));
    for (int k = 0; k < kMaxSavedActivations; ++k) {
      T* saved = nullptr;
      TF_LSTM_OPS_RETURN_IF_ERROR(
          this->OutRows(call, layer.sequence, k, &saved));
      layer.saved.Set(k, saved, call.sizes.cell);
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->OutRows(call, layer.sequence, kOutputH, &layer.h));
    layer.h_stride = call.sizes.cell;
    return cuda::ComputeForward(call.device(), layer);
  }
};

// The base class of the kernels of the gradient ops.
template <class T, const OpVariant& kVariant>
class GradKernel : public BlockCellKernel<T, kVariant> {
 protected:
  Status BeginGrad(const KernelContext& context, CudaCall<T>* call,
                   LayerBackward<T>* layer) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, call, layer));
    SetOutputsAndGrads(call->sizes, layer->sequence.rows(), call, layer);
    return Status();
  }

  // wci_grad, wcf_grad, wco_grad: outputs [first, first + 3).
  Status SetPeepholeGrads(const CudaCall<T>& call, size_t first,
                          LayerBackward<T>* layer) const {
    for (size_t n = 0; n < kPeepholes.size(); ++n) {
      if (this->use_peephole()) {
        layer->weights_grad.peephole[kPeepholes[n].gate] = call.Out(first + n);
      } else {
        TF_LSTM_OPS_RETURN_IF_ERROR(call.ZeroOutput(first + n));
      }
    }
    return Status();
  }
};

template <class T>
class CellGradKernel : public GradKernel<T, kCellGrad> {
 public:
  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kCellGrad.signature());
    LayerBackward<T> layer;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->BeginGrad(context, &call, &layer));
    layer.c0_grad = {call.Out(0), call.sizes.cell};
    layer.z_grad = call.Out(1);
    TF_LSTM_OPS_RETURN_IF_ERROR(this->SetPeepholeGrads(call, 2, &layer));
    return cuda::ComputeBackward(call.device(), layer);
  }
};

// Gradients of all inputs. The stock ops take the gradients of cs and h, the
// FullGrad ops those of all seven outputs.
template <class T, const OpVariant& kVariant>
class InputGradKernel : public GradKernel<T, kVariant> {
 public:
  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(kVariant.signature());
    LayerBackward<T> layer;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->BeginGrad(context, &call, &layer));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->OutRows(call, layer.sequence, 0, &layer.x_grad));
    layer.c0_grad = {call.Out(1), call.sizes.cell};
    layer.h0_grad = {call.Out(2), call.sizes.cell};
    SetMatrices(call.sizes, call.Out(3), &layer.weights_grad);
    TF_LSTM_OPS_RETURN_IF_ERROR(this->SetPeepholeGrads(call, 4, &layer));
    layer.weights_grad.input_bias = call.Out(7);
    return cuda::ComputeBackward(call.device(), layer);
  }
};

template <class K>
void Register(const OpVariant& variant, TF_DataType type) {
  std::vector<const char*> host_memory;
  if (variant.sequence) host_memory.push_back("seq_len_max");
  RegisterCudaKernel<K>(variant.signature().op, type, host_memory);
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

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::block_cell
