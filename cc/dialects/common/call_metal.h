// MetalCall: the tensors of one call of an op on a Metal device. GraphBuilder:
// the graph's view of them.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_CALL_METAL_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_CALL_METAL_H_

#include <string>
#include <vector>

#include "backends/metal/program.h"
#include "core/signature.h"
#include "dialects/common/inputs.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::metal {

class MetalCall : public Inputs {
 public:
  using Inputs::Inputs;

  // An argument of the graph that the kernel computes on the host.
  struct HostArgument {
    std::string name;
    Extents shape;
    std::vector<float> elements;
  };

  // The next output.
  Status Allocate(const tf::KernelContext& context, TF_DataType type,
                  const Shape& shape);
  // All outputs of a signature that has no opaque ones.
  Status AllocateAll(const tf::KernelContext& context, TF_DataType type);

  const std::vector<tf::Tensor>& outputs() const { return outputs_; }
  const Shape& output_shape(size_t n) const { return output_shapes_[n]; }

  std::vector<HostArgument> host_arguments;

 private:
  std::vector<tf::Tensor> outputs_;
  std::vector<Shape> output_shapes_;
};

// Adds the arguments and results of a call to a program. The indices of its
// arguments count the call's inputs, then its host arguments; those of its
// results are the call's outputs. Must not outlive the call and the program.
class GraphBuilder {
 public:
  // `type` is the op's element type.
  GraphBuilder(const MetalCall& call, TF_DataType type, Program* program)
      : call_(call), type_(type), program_(program) {}

  MPSGraph* graph() const { return program_->graph(); }
  bool Has(const char* name) const { return call_.Find(name) != nullptr; }

  // An input by name, as Float32. 0 where it is absent.
  Value In(const char* name);
  // Input n, of the op's type; n may be beyond the signature's inputs.
  Value In(size_t n);
  // `absent` where the call has no such host argument.
  Value HostArgument(const char* name, const Value& absent);

  const Extents& output_shape(int n) const {
    return call_.output_shape(n).dims();
  }
  // Sets output n to a value that broadcasts to its shape.
  void Out(int n, const Value& value);

 private:
  const MetalCall& call_;
  TF_DataType type_;
  Program* program_;
};

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_CALL_METAL_H_
