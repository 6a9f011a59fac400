#include <type_traits>
#include <vector>

#include "backends/cpu/layer.h"
#include "backends/cpu/thread_count.h"
#include "dialects/common/call_cpu.h"
#include "dialects/mpsgraph/problem.h"
#include "dialects/mpsgraph/signatures.h"
#include "tf/kernel.h"
#include "tf/op.h"

namespace tf_lstm_ops::mpsgraph {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;

// Sets the layer directions and their valid steps.
template <class T, class Layer>
void SetLayers(const Directions& directions, const Problem& problem,
               CpuCall<T>* call, std::vector<Layer>* layers,
               cpu::PackedSequences* packed) {
  using C = typename CpuCall<T>::Compute;
  const auto tensors = Tensors<C>::From(call);
  layers->resize(problem.directions);
  for (int64_t d = 0; d < problem.directions; ++d) {
    Layer& layer = (*layers)[d];
    directions.SetLayer<C>(d, tensors, &layer);
    layer.config.bfloat16 = std::is_same_v<T, BFloat16>;
    layer.h_stride = problem.width();
    packed->emplace_back(layer.sequence);
  }
}

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
    CpuCall<T> call(MPSGraphLSTM(),
                    cpu::ThreadCount(ConfiguredThreads(context)));
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MakeProblem(descriptor_, call.shape_of(), &problem));
    for (const Shape& shape :
         ForwardShapes(problem, produce_cell_, training_)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call.Allocate(context, shape));
    }
    const Directions directions(descriptor_, problem);
    std::vector<LayerForward<C>> layers;
    cpu::PackedSequences packed;
    SetLayers(directions, problem, &call, &layers, &packed);
    C* h = call.Out(0);
    auto* cells = call.SavedOut(call.OutData(1), call.output_size(1));
    auto* z_state = call.SavedOut(call.OutData(2), call.output_size(2));
    for (int64_t d = 0; d < problem.directions; ++d) {
      layers[d].h = directions.Output(d, h);
      layers[d].saved = directions.template Saved<C>(d, cells, z_state);
    }
    cpu::ComputeForward(layers.data(), packed.data(), layers.size(),
                        call.threads);
    call.Finish();
    return Status();
  }

 private:
  using C = typename CpuCall<T>::Compute;

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
    CpuCall<T> call(MPSGraphLSTMGradients(),
                    cpu::ThreadCount(ConfiguredThreads(context)));
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MakeProblem(descriptor_, call.shape_of(), &problem));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context));
    const Directions directions(descriptor_, problem);
    std::vector<LayerBackward<C>> layers;
    cpu::PackedSequences packed;
    SetLayers(directions, problem, &call, &layers, &packed);
    const auto output_grads =
        OutputGrads<C, typename CpuCall<T>::Saved>::From(&call);
    const InputGrads<C> input_grads = {call.Out(0), call.Out(1), call.Out(2),
                                       call.Out(3), call.Out(4), call.Out(5),
                                       call.Out(6)};
    for (int64_t d = 0; d < problem.directions; ++d) {
      directions.SetOutputGrads(d, output_grads, &layers[d]);
      directions.SetInputGrads(d, input_grads, &layers[d]);
    }
    cpu::ComputeBackward(layers.data(), packed.data(), layers.size(),
                         call.threads);
    call.Finish();
    return Status();
  }

 private:
  using C = typename CpuCall<T>::Compute;

  Descriptor descriptor_;
};

template <class T>
bool RegisterAll() {
  tf::RegisterKernel<ForwardKernel<T>>(MPSGraphLSTM().op, "CPU",
                                       tf::kDataType<T>);
  tf::RegisterKernel<GradientsKernel<T>>(MPSGraphLSTMGradients().op, "CPU",
                                         tf::kDataType<T>);
  return true;
}

[[maybe_unused]] const bool kDefined[] = {
    tf::DefineOp<&MPSGraphLSTM>(),
    tf::DefineOp<&MPSGraphLSTMGradients>(),
};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::mpsgraph
