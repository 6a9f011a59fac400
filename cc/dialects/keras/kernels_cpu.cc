#include "backends/cpu/thread_count.h"
#include "dialects/keras/passes_cpu.h"
#include "tf/kernel.h"
#include "tf/op.h"

namespace tf_lstm_ops::keras {
namespace {

template <class Pass>
class PassKernel : public tf::Kernel {
 public:
  Status Init(const tf::KernelConstruction& construction) override {
    return pass_.Init(construction);
  }
  Status Compute(const tf::KernelContext& context) override {
    return pass_.Compute(context, cpu::ThreadCount(ConfiguredThreads(context)));
  }

 private:
  Pass pass_;
};

template <class T, const OpVariant& kVariant>
void RegisterVariant() {
  tf::RegisterKernel<PassKernel<ForwardPass<T, kVariant>>>(
      kVariant.forward().op, "CPU", tf::kDataType<T>);
  tf::RegisterKernel<PassKernel<GradientPass<T, kVariant>>>(
      kVariant.gradient().op, "CPU", tf::kDataType<T>);
}

// The kernels of a layer's ops and of the ops of two layers.
template <class T, const OpVariant& kLayer>
void RegisterLayer() {
  RegisterVariant<T, kLayer>();
  RegisterVariant<T, kBidirectional<kLayer>>();
}

template <class T>
bool RegisterAll() {
  RegisterLayer<T, kLstm>();
  RegisterLayer<T, kGru>();
  RegisterLayer<T, kResetBeforeGru>();
  RegisterLayer<T, kLayerNormLstm>();
  RegisterLayer<T, kLayerNormGru>();
  RegisterLayer<T, kSimpleRnn>();
  return true;
}

template <const OpVariant& kLayer>
bool DefineLayer() {
  constexpr const OpVariant& kBoth = kBidirectional<kLayer>;
  return tf::DefineOp<kLayer.forward>() && tf::DefineOp<kLayer.gradient>() &&
         tf::DefineOp<kBoth.forward>() && tf::DefineOp<kBoth.gradient>();
}

[[maybe_unused]] const bool kDefined[] = {
    DefineLayer<kLstm>(),           DefineLayer<kGru>(),
    DefineLayer<kResetBeforeGru>(), DefineLayer<kLayerNormLstm>(),
    DefineLayer<kLayerNormGru>(),   DefineLayer<kSimpleRnn>()};

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::keras
