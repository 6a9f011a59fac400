// MetalKernel: the base class of the kernels for a Metal device. MetalCall: the
// tensors of one call. GraphBuilder: the arguments and results of its graph.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/metal/device.h"
#include "core/signature.h"
#include "dialects/common/inputs.h"
#include "tf/kernel.h"

namespace tf_lstm_ops {

class MetalCall : public Inputs<> {
 public:
  using Inputs<>::Inputs;

  // An argument of the graph that the kernel computes on the host: numbers, or
  // indices.
  struct HostArgument {
    std::string name;
    metal::Extents shape;
    std::vector<float> numbers;
    std::vector<int32_t> indices;

    const void* data() const {
      if (!indices.empty()) return indices.data();
      return numbers.data();
    }
  };

  // Allocates the next output.
  Status Allocate(const tf::KernelContext& context, const Shape& shape,
                  TF_DataType type) {
    const auto index = static_cast<int>(outputs_.size());
    return context.AllocateOutput(index, type, shape, &outputs_.emplace_back());
  }
  // Allocates all outputs of a signature without opaque dimensions.
  Status AllocateAll(const tf::KernelContext& context, TF_DataType type) {
    return context.Outputs(signature, inputs, sizes, type, &outputs_);
  }

  const tf::Tensors& outputs() const { return outputs_; }

  std::vector<HostArgument> host_arguments;

 private:
  tf::Tensors outputs_;
};

// Adds the arguments and results of a call to a program. The indices of the
// program's arguments count the call's inputs, then its host arguments. The
// indices of the results are the indices of the call's outputs. `call` and
// `program` must outlive this object.
class GraphBuilder {
 public:
  // `type` is the op's element type.
  GraphBuilder(const MetalCall& call, TF_DataType type, metal::Program* program)
      : call_(call), type_(type), program_(program) {}

  MPSGraph* graph() const { return program_->graph(); }
  bool Has(const char* name) const { return call_.Find(name) != nullptr; }

  // Returns an input by name, as Float32. 0 where it is absent.
  metal::Value In(const char* name);
  // Returns a host argument, or `absent` where the call has no such argument.
  metal::Value HostArgument(const char* name, const metal::Value& absent);

  metal::Extents output_shape(int n) const {
    return call_.outputs()[n].shape().dims();
  }
  // Sets output n to a value that broadcasts to the shape of the output.
  void Out(int n, const metal::Value& value);

 private:
  metal::Value Argument(int index, const metal::Extents& shape,
                        MPSDataType type);

  const MetalCall& call_;
  TF_DataType type_;
  metal::Program* program_;
  std::map<int, metal::Value> arguments_;  // those that were asked for
};

class MetalKernel : public tf::Kernel {
 public:
  // A kernel of any op with the attributes of `signature`. The op may have
  // another name. The signature must outlive the kernel.
  explicit MetalKernel(const Signature& signature) : signature_(signature) {}

  // Reads all attributes of the signature. They are a part of the key of a
  // graph.
  Status Init(const tf::KernelConstruction& construction) override;

 protected:
  const Signature& signature() const { return signature_; }
  TF_DataType type() const { return type_; }  // the attribute T

  // Runs the graph that `build` makes. A graph is built once for each key. The
  // key consists of the attributes, the shapes of the call's inputs, and the
  // names and shapes of its host arguments. The graph may depend on nothing
  // else. Errors: those of Execute; Internal where MPSGraph raises an
  // exception.
  Status Run(const tf::KernelContext& context, const MetalCall& call,
             const std::function<void(GraphBuilder*)>& build) const;

 private:
  const Signature& signature_;
  TF_DataType type_ = TF_FLOAT;
  std::string options_;  // the op and its attributes
};

// Registers class K, which has a default constructor, for the device "GPU" and
// each type that MPSGraph has. The named arguments stay in host memory. Prints
// errors. Returns true.
template <class K>
bool RegisterMetalKernel(const char* op,
                         const std::vector<const char*>& host_memory = {}) {
  for (const TF_DataType type : {TF_FLOAT, TF_HALF, TF_BFLOAT16}) {
    if (type == TF_BFLOAT16 && !metal::HasBFloat16()) continue;
    tf::PrintRegistrationFailure(
        op, tf::RegisterKernel<K>(op, "GPU", type, 0, host_memory));
  }
  return true;
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_
