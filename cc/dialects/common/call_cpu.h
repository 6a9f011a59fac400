// CpuCall: one call of an op on the CPU. It converts tensors to the type in
// which the CPU engine computes.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_CALL_CPU_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_CALL_CPU_H_

#include <utility>
#include <vector>

#include "backends/cpu/memory/huge_pages.h"
#include "backends/cpu/staging.h"
#include "core/layer_direction.h"
#include "dialects/common/inputs.h"

namespace tf_lstm_ops {

// T is the element type of the op's tensors, Context where they come from; see
// Inputs. It also has Type, kType<T>, AllocateOutput and Outputs. Tensors of
// 16-bit types are converted by up to `threads` threads: inputs by In, outputs
// by Finish. All pointers are views of memory that lives as long as this
// object.
template <class T, class Context = tf::KernelContext>
class CpuCall : public Inputs<Context> {
  using Base = Inputs<Context>;
  using typename Base::Tensor;

 public:
  using Base::Find;
  using Base::inputs;
  using Base::signature;
  using Base::sizes;
  using Compute = typename cpu::Staging<T>::Compute;
  using Saved = typename cpu::Staging<T>::Saved;

  CpuCall(const Signature& s, int threads)
      : Base(s), threads(threads), staging_(threads) {}

  const int threads;

  // Returns the elements of an input without conversion. Null where the input
  // is absent.
  template <class E = T, class Key>
  const E* Data(Key key) const {
    const Tensor* tensor = Find(key);
    return tensor ? tensor->template data<E>() : nullptr;
  }
  const bool* Mask(const char* name) const { return Data<bool>(name); }

  // Returns an input, or its first `size` elements. Null where the input is
  // absent.
  template <class Key>
  const Compute* In(Key key) {
    const Tensor* tensor = Find(key);
    return tensor ? staging_.In(tensor->template data<T>(), tensor->size())
                  : nullptr;
  }
  template <class Key>
  const Compute* In(Key key, int64_t size) {
    return staging_.In(Data(key), size);
  }
  // The same for saved activations, which stay bfloat16.
  template <class Key>
  const Saved* SavedIn(Key key) {
    const Tensor* tensor = Find(key);
    return tensor ? staging_.SavedIn(tensor->template data<T>(), tensor->size())
                  : nullptr;
  }
  template <class Key>
  const Saved* SavedIn(Key key, int64_t size) {
    return staging_.SavedIn(Data(key), size);
  }
  // Returns a view of weight matrices: `size` elements of an input from `begin`
  // on. layout(data) makes the view. The input must be present.
  template <class Key, class Layout>
  GateMatrices<const Compute> Weights(Key key, int64_t begin, int64_t size,
                                      const Layout& layout) {
    return staging_.Weights(Data(key) + begin, size, layout);
  }

  // Allocates the next output.
  Status Allocate(const Context& context, const Shape& shape,
                  typename Context::Type type = Context::template kType<T>) {
    const auto index = static_cast<int>(outputs_.size());
    Tensor* output = &outputs_.emplace_back();
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(index, type, shape, output));
    UseHugePages(output->template data<void>(), output->bytes());
    return Status();
  }
  // Allocates all outputs of a signature without opaque dimensions.
  Status AllocateAll(const Context& context) {
    TF_LSTM_OPS_RETURN_IF_ERROR(context.Outputs(
        signature, inputs, sizes, Context::template kType<T>, &outputs_));
    for (const Tensor& output : outputs_) {
      UseHugePages(output.template data<void>(), output.bytes());
    }
    return Status();
  }
  // Returns the elements of output n without conversion.
  template <class E = T>
  E* OutData(size_t n) const {
    return outputs_[n].template data<E>();
  }
  int64_t output_size(size_t n) const { return outputs_[n].size(); }
  // Returns output n, or `size` elements of an output from `data` on, to write.
  // Null where there are no elements.
  Compute* Out(size_t n) { return Out(OutData(n), output_size(n)); }
  Compute* Out(T* data, int64_t size) {
    return size > 0 ? staging_.Out(data, size) : nullptr;
  }
  Saved* SavedOut(T* data, int64_t size) {
    return size > 0 ? staging_.SavedOut(data, size) : nullptr;
  }
  // Returns `size` uninitialised elements.
  Compute* Scratch(int64_t size) { return staging_.Scratch(size); }

  cpu::Staging<T>& staging() { return staging_; }
  // Converts the outputs. Call it after the computation.
  void Finish() { staging_.Finish(); }

 private:
  typename Context::Tensors outputs_;
  cpu::Staging<T> staging_;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_CALL_CPU_H_
