// Inputs: the checked inputs of one call of an op.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_INPUTS_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_INPUTS_H_

#include <vector>

#include "core/signature.h"
#include "dialects/common/shape_of.h"

namespace tf_lstm_ops {

namespace tf {
class KernelContext;
}

// Context: where the tensors come from. It has the types Tensor and Tensors and
// the member Inputs of tf::KernelContext. A Key is the name of an input (const
// char*), or its number (int) where the dialect numbers its inputs.
template <class Context = tf::KernelContext>
struct Inputs {
  using Tensor = typename Context::Tensor;

  const Signature& signature;
  typename Context::Tensors inputs;
  Sizes sizes;

  explicit Inputs(const Signature& s) : signature(s) {}

  // Fetches and checks the inputs. Errors: those of CheckInputs.
  Status Fetch(const Context& context) {
    return context.Inputs(signature, &inputs, &sizes);
  }

  // Returns an input, or null where the op has no such input or it is absent.
  template <class Key>
  const Tensor* Find(Key key) const {
    const int n = signature.InputIndex(key);
    if (n < 0) return nullptr;
    const Argument& argument = signature.inputs[n];
    const bool absent =
        argument.optional && IsAbsent(argument, inputs[n].shape());
    return absent ? nullptr : &inputs[n];
  }
  // The shape of an input. The rank is unknown where Find returns null.
  Shape InputShape(const char* name) const {
    const Tensor* tensor = Find(name);
    return tensor ? tensor->shape() : Shape();
  }
  // A function that returns InputShape. It refers to this object.
  ShapeOf shape_of() const {
    return [this](const char* name) { return InputShape(name); };
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_INPUTS_H_
