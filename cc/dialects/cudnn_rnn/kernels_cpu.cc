#include <algorithm>
#include <atomic>
#include <memory>
#include <type_traits>

#include "backends/cpu/layer.h"
#include "backends/cpu/multi_layer_pass.h"
#include "backends/cpu/thread_count.h"
#include "core/dropout.h"
#include "core/reserve.h"
#include "dialects/common/call_cpu.h"
#include "dialects/cudnn_rnn/dropout_mask.h"
#include "dialects/cudnn_rnn/for_python.h"
#include "dialects/cudnn_rnn/problem.h"
#include "dialects/cudnn_rnn/signatures.h"
#include "tf/device_plugin.h"
#include "tf/kernel.h"
#include "tf/op.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;

template <class T>
using Compute = typename CpuCall<T>::Compute;

// Fetches and checks the inputs.
template <class T>
Status Begin(const KernelContext& context, const Attributes& attributes,
             CpuCall<T>* call, MultiLayerRnn* rnn) {
  TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
  return MakeProblem(attributes, call->shape_of(),
                     call->template Data<int32_t>("sequence_lengths"), rnn);
}

template <class T>
Reserve MakeReserve(const MultiLayerRnn& rnn, float dropout) {
  return Reserve(rnn, dropout, tf::kDataType<T>, sizeof(T));
}

template <class T>
cpu::MultiLayerPass<Compute<T>> MakePass(
    const MultiLayerRnn& rnn, const Reserve& reserve,
    const std::unique_ptr<DropoutMask>& mask, int threads) {
  return {rnn, reserve, mask.get(), std::is_same_v<T, BFloat16>, threads};
}

template <class T, const OpVariant& kVariant>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("is_training", &is_training_));
    return attributes_.Init(construction, kVariant.version == 3,
                            kVariant.version == 3);
  }

  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kVariant.forward(),
                    cpu::ThreadCount(this->ConfiguredThreads(context)));
    MultiLayerRnn rnn;
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin(context, attributes_, &call, &rnn));
    const float dropout = is_training_ ? attributes_.dropout : 0;
    const Reserve reserve = MakeReserve<T>(rnn, dropout);
    TF_LSTM_OPS_RETURN_IF_ERROR(Allocate(context, rnn, reserve, &call));
    // Without dropout the key is 0, so that equal calls return equal reserves.
    const uint64_t key =
        HasDropout(rnn, dropout) ? dropout_keys_.Next(attributes_.seed) : 0;
    const auto mask = MakeDropoutMask(rnn, dropout, key);
    MultiLayerForward<cudnn_rnn::Compute<T>> t = {};
    SetInputs(rnn, &call, &t);
    SetOutputs(rnn, &call, &t);
    if (!IsLstm(rnn.model.cell)) *call.OutData(2) = T{};
    SetReserve(reserve, key, &call, &t);
    MakePass<T>(rnn, reserve, mask, call.threads).Forward(t);
    call.Finish();
    return Status();
  }

  CellKind cell() const { return attributes_.cell; }

 private:
  Status Allocate(const KernelContext& context, const MultiLayerRnn& rnn,
                  const Reserve& reserve, CpuCall<T>* call) const {
    for (const Shape& shape :
         ForwardShapes(rnn, is_training_, reserve.size())) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, shape));
    }
    if (kVariant.version == 1) return Status();
    // In stock TensorFlow host_reserved has the number of the algorithm. The
    // CPU has one algorithm, number 0.
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(
        context, HostReservedShape(kVariant, is_training_), TF_INT8));
    std::fill_n(call->template OutData<int8_t>(4), call->output_size(4),
                int8_t{0});
    return Status();
  }

  void SetReserve(const Reserve& reserve, uint64_t key, CpuCall<T>* call,
                  MultiLayerForward<cudnn_rnn::Compute<T>>* t) const {
    T* data = call->OutData(3);
    if (is_training_) {
      reserve.WriteHeader(key, data);
      if constexpr (std::is_same_v<T, BFloat16>) {
        t->bfloat16_reserve = data + reserve.body();
      } else {
        t->reserve = call->Out(data + reserve.body(), reserve.body_size());
      }
    } else {
      *data = T{};
    }
  }

  Attributes attributes_;
  bool is_training_ = true;
  DropoutKeys dropout_keys_;
};

template <class T, const OpVariant& kVariant>
class BackwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kVariant.version == 3,
                            kVariant.version == 3);
  }

  Status Compute(const KernelContext& context) override {
    CpuCall<T> call(kVariant.backward(),
                    cpu::ThreadCount(this->ConfiguredThreads(context)));
    MultiLayerRnn rnn;
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin(context, attributes_, &call, &rnn));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckBackprop(rnn, call.shape_of()));
    const Reserve reserve = MakeReserve<T>(rnn, attributes_.dropout);
    uint64_t key = 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(reserve.Check(
        call.Data("reserve_space"), call.InputShape("reserve_space"), &key));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    const auto mask = MakeDropoutMask(rnn, attributes_.dropout, key);
    MakePass<T>(rnn, reserve, mask, call.threads)
        .Backward(Tensors(rnn, reserve, &call));
    call.Finish();
    return Status();
  }

  CellKind cell() const { return attributes_.cell; }

 private:
  static MultiLayerBackward<cudnn_rnn::Compute<T>> Tensors(
      const MultiLayerRnn& rnn, const Reserve& reserve, CpuCall<T>* call) {
    MultiLayerBackward<cudnn_rnn::Compute<T>> t = {};
    SetInputs(rnn, call, &t);
    SetGrads(rnn, call, &t);
    const T* body = call->Data("reserve_space") + reserve.body();
    if constexpr (std::is_same_v<T, BFloat16>) {
      t.bfloat16_reserve = body;
    } else {
      t.reserve = call->staging().In(body, reserve.body_size());
    }
    if (!IsLstm(rnn.model.cell)) {
      std::fill_n(call->OutData(2), call->output_size(2), T{});
    }
    return t;
  }

  Attributes attributes_;
};

std::atomic<bool> is_cuda_build{false};

// Kernel K under TensorFlow's own name. It refuses a GRU where its gate order
// is ambiguous: with a PluggableDevice Keras takes these ops on a TensorFlow
// without CUDA. Without one, the ops come from a graph made with CUDA.
template <class K>
class Stock : public K {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(K::Init(construction));
    if (is_cuda_build || !tf::HasDevicePlugin()) return Status();
    return RefuseStockGru(K::cell());
  }
};

// Registers a kernel under our own name and under the stock name, for which
// stock TensorFlow has no CPU kernel.
template <class K>
void Register(const Signature& signature, TF_DataType type) {
  tf::RegisterKernel<K>(signature.op, "CPU", type);
  tf::RegisterKernel<Stock<K>>(StockName(signature), "CPU", type);
}

template <class T, const OpVariant& kVariant>
void RegisterVariant() {
  Register<ForwardKernel<T, kVariant>>(kVariant.forward(), tf::kDataType<T>);
  Register<BackwardKernel<T, kVariant>>(kVariant.backward(), tf::kDataType<T>);
}

template <class T>
bool RegisterAll() {
  RegisterVariant<T, kV1>();
  RegisterVariant<T, kV2>();
  RegisterVariant<T, kV3>();
  RegisterDropoutMask<T>("CPU");
  return true;
}

[[maybe_unused]] const bool kDefined[] = {
    tf::DefineOp<&CudnnRNN>(),
    tf::DefineOp<&CudnnRNNV2>(),
    tf::DefineOp<&CudnnRNNV3>(),
    tf::DefineOp<&CudnnRNNBackprop>(),
    tf::DefineOp<&CudnnRNNBackpropV2>(),
    tf::DefineOp<&CudnnRNNBackpropV3>(),
    tf::DefineOp<&CudnnRNNDropoutMask>(),
};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn

void tf_lstm_ops_set_cuda_build(bool is_cuda_build) {
  tf_lstm_ops::cudnn_rnn::is_cuda_build = is_cuda_build;
}
