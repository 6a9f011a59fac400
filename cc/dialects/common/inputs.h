// Inputs: the checked inputs of one call of an op, by their names.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_INPUTS_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_INPUTS_H_

#include <vector>

#include "core/signature.h"
#include "dialects/common/shape_of.h"
#include "tf/kernel.h"

namespace tf_lstm_ops {

struct Inputs {
  const Signature& signature;
  std::vector<tf::Tensor> inputs;
  Sizes sizes;

  explicit Inputs(const Signature& s) : signature(s) {}

  // Fetches and checks the inputs. Errors: those of CheckInputs.
  Status Fetch(const tf::KernelContext& context) {
    return context.Inputs(signature, &inputs, &sizes);
  }

  // Returns an input, or null where the op has no such input or it is absent.
  const tf::Tensor* Find(const char* name) const {
    const int n = signature.InputIndex(name);
    if (n < 0 || IsAbsent(signature.inputs[n], inputs[n].shape())) {
      return nullptr;
    }
    return &inputs[n];
  }
  // The shape of an input. The rank is unknown where Find returns null.
  Shape InputShape(const char* name) const {
    const tf::Tensor* tensor = Find(name);
    return tensor ? tensor->shape() : Shape();
  }
  // A function that returns InputShape. It refers to this object.
  ShapeOf shape_of() const {
    return [this](const char* name) { return InputShape(name); };
  }
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_INPUTS_H_
