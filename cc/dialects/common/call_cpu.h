// CpuCall: one call of an op on the CPU, its tensors in the type that the CPU
// engine computes in.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_CALL_CPU_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_CALL_CPU_H_

#include <utility>
#include <vector>

#include "backends/cpu/staging.h"
#include "core/layer_direction.h"
#include "dialects/common/inputs.h"
#include "tf/kernel.h"

namespace tf_lstm_ops {

// T is the element type of the op's tensors. Tensors of 16-bit types are
// converted: inputs when they are fetched, outputs by Finish.
template <class T>
class CpuCall : public Inputs {
 public:
  using Compute = typename cpu::Staging<T>::Compute;
  using Inputs::Inputs;

  // The elements of an input as they are. Null where it is absent.
  template <class E = T>
  const E* Data(const char* name) const {
    const tf::Tensor* tensor = Find(name);
    return tensor ? tensor->data<E>() : nullptr;
  }
  const bool* Mask(const char* name) const { return Data<bool>(name); }

  // An input, or its first `size` elements. Null where it is absent.
  const Compute* In(const char* name) {
    const tf::Tensor* tensor = Find(name);
    return tensor ? staging_.In(tensor->data<T>(), tensor->size()) : nullptr;
  }
  const Compute* In(const char* name, int64_t size) {
    return staging_.In(Data(name), size);
  }
  // Weight matrices: `size` elements of an input from `begin` on, laid out as
  // layout(data) says. The op must have the input.
  template <class Layout>
  GateMatrices<const Compute> Weights(const char* name, int64_t begin,
                                      int64_t size, const Layout& layout) {
    return staging_.Weights(Data(name) + begin, size, layout);
  }
  // Moves an input out of this object.
  tf::Tensor Take(const char* name) {
    return std::move(inputs[signature.InputIndex(name)]);
  }

  // The next output.
  Status Allocate(const tf::KernelContext& context, const Shape& shape,
                  TF_DataType type = tf::kDataType<T>) {
    const auto index = static_cast<int>(outputs_.size());
    outputs_.emplace_back();
    return context.AllocateOutput(index, type, shape, &outputs_.back());
  }
  // All outputs of a signature that has no opaque ones.
  Status AllocateAll(const tf::KernelContext& context) {
    return context.Outputs(signature, inputs, sizes, tf::kDataType<T>,
                           &outputs_);
  }
  // The elements of output n as they are.
  template <class E = T>
  E* OutData(size_t n) const {
    return outputs_[n].template data<E>();
  }
  int64_t output_size(size_t n) const { return outputs_[n].size(); }
  // Output n, or `size` elements of an output from `data` on, to write. Null
  // where the output is empty.
  Compute* Out(size_t n) { return Out(OutData(n), output_size(n)); }
  Compute* Out(T* data, int64_t size) {
    return size > 0 ? staging_.Out(data, size) : nullptr;
  }
  // `size` elements that live as long as this object.
  Compute* Scratch(int64_t size) { return staging_.Scratch(size); }

  cpu::Staging<T>& staging() { return staging_; }
  // Converts the outputs.
  void Finish() { staging_.Finish(); }

 private:
  std::vector<tf::Tensor> outputs_;
  cpu::Staging<T> staging_;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_CALL_CPU_H_
