// Arguments: those of one call of an op, checked, by their names, and in the
// type that the CPU engine computes in.
#ifndef TF_LSTM_OPS_DIALECTS_ARGUMENTS_H_
#define TF_LSTM_OPS_DIALECTS_ARGUMENTS_H_

#include <utility>

#include "backends/cpu/staging.h"
#include "core/rnn.h"
#include "dialects/inputs.h"
#include "tf/kernel.h"

namespace tf_lstm_ops {

template <class T>
struct Arguments : Inputs {
  using Compute = typename cpu::Staging<T>::Compute;

  cpu::Staging<T> staging;

  explicit Arguments(const Signature& s) : Inputs(s) {}

  template <class E = T>
  const E* Data(const char* name) const {
    const tf::Tensor* tensor = Find(name);
    return tensor ? tensor->data<E>() : nullptr;
  }
  // In the type that the engine computes in.
  const Compute* In(const char* name) {
    const tf::Tensor* tensor = Find(name);
    return tensor ? staging.In(tensor->data<T>(), tensor->size()) : nullptr;
  }
  // Weights that the op has: [K, gates * H].
  GateMatrices<const Compute> Matrices(const char* name, int gates,
                                       int64_t cell) {
    const tf::Tensor& tensor = *Find(name);
    return staging.Weights(
        tensor.data<T>(), tensor.size(),
        [&](const auto* data) { return ByInput(data, gates, cell); });
  }
  // Moves an argument that the op has out of this object.
  tf::Tensor Take(const char* name) {
    return std::move(inputs[signature.InputIndex(name)]);
  }
  Compute* Out(const tf::Tensor& output) {
    return staging.Out(output.data<T>(), output.size());
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_DIALECTS_ARGUMENTS_H_
