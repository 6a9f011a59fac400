#include "backends/cuda/layer/layer.h"
#include "dialects/common/call_cuda.h"
#include "dialects/mpsgraph/problem.h"
#include "dialects/mpsgraph/signatures.h"

namespace tf_lstm_ops::mpsgraph {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;

template <class T>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("produce_cell", &produce_cell_));
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("training", &training_));
    return descriptor_.Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(MPSGraphLSTM());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MakeProblem(descriptor_, call.shape_of(), &problem));
    for (const Shape& shape :
         ForwardShapes(problem, produce_cell_, training_)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, shape));
    }
    const Directions directions(descriptor_, problem);
    const auto tensors = Tensors<T>::From(&call);
    for (int64_t d = 0; d < problem.directions; ++d) {
      LayerForward<T> layer;
      directions.SetLayer<T>(d, tensors, &layer);
      layer.h = directions.Output(d, call.Out(0));
      layer.h_stride = problem.width();
      layer.saved = directions.Saved<T>(d, call.Out(1), call.Out(2));
      TF_LSTM_OPS_RETURN_IF_ERROR(cuda::ComputeForward(call.device(), layer));
    }
    return Status();
  }

 private:
  Descriptor descriptor_;
  bool produce_cell_ = false;
  bool training_ = false;
};

template <class T>
class GradientsKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return descriptor_.Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    CudaCall<T> call(MPSGraphLSTMGradients());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MakeProblem(descriptor_, call.shape_of(), &problem));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    const Directions directions(descriptor_, problem);
    const auto tensors = Tensors<T>::From(&call);
    const auto output_grads = OutputGrads<T, T>::From(&call);
    const InputGrads<T> input_grads = {call.Out(0), call.Out(1), call.Out(2),
                                       call.Out(3), call.Out(4), call.Out(5),
                                       call.Out(6)};
    for (int64_t d = 0; d < problem.directions; ++d) {
      LayerBackward<T> layer;
      directions.SetLayer<T>(d, tensors, &layer);
      directions.SetOutputGrads(d, output_grads, &layer);
      directions.SetInputGrads(d, input_grads, &layer);
      TF_LSTM_OPS_RETURN_IF_ERROR(cuda::ComputeBackward(call.device(), layer));
    }
    return Status();
  }

 private:
  Descriptor descriptor_;
};

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  RegisterCudaKernel<ForwardKernel<T>>(MPSGraphLSTM().op, kType);
  RegisterCudaKernel<GradientsKernel<T>>(MPSGraphLSTMGradients().op, kType);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::mpsgraph
