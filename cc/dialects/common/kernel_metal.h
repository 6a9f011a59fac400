// Kernel: the base class of this device's kernels, and one call of them.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_

#include <functional>
#include <string>
#include <vector>

#include "backends/metal/device.h"
#include "backends/metal/program.h"
#include "core/signature.h"
#include "dialects/common/inputs.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::metal {

// The tensors of a call; see Kernel::Run.
class Call : public Inputs {
 public:
  using Inputs::Inputs;

  // Where the kernel itself makes the numbers of an argument of the graph.
  struct Made {
    std::string name;
    Extents shape;
    std::vector<float> numbers;
  };

  Status Allocate(const tf::KernelContext& context, TF_DataType type,
                  const Shape& shape);
  // All outputs, of a signature that has no opaque ones.
  Status AllocateAll(const tf::KernelContext& context, TF_DataType type);

  const Shape& output_shape(size_t n) const { return output_shapes_[n]; }
  const tf::Tensor& output(size_t n) const { return outputs_[n]; }

  std::vector<Made> made;

 private:
  friend class Kernel;

  std::vector<tf::Tensor> outputs_;
  std::vector<Shape> output_shapes_;
};

// What a kernel builds a graph with: arguments by their names, results by their
// numbers.
class Builder {
 public:
  Builder(const Call& call, TF_DataType type, Program* program)
      : call_(call), type_(type), program_(program) {}

  MPSGraph* graph() const { return program_->graph(); }
  // 0 where the argument is absent.
  Value In(const char* name);
  // Argument n, of the op's type: one of a list, beyond the signature's.
  Value In(size_t n);
  // One that the kernel has made.
  Value Made(const char* name);
  bool Has(const char* name) const { return call_.Find(name) != nullptr; }
  const Extents& output_shape(int n) const {
    return call_.output_shape(n).dims();
  }
  // A value that broadcasts to the shape of output n.
  void Out(int n, const Value& value);

 private:
  const Call& call_;
  TF_DataType type_;
  Program* program_;
};

class Kernel : public tf::Kernel {
 public:
  // For all ops that have these attributes, whatever their names.
  explicit Kernel(const Signature& signature) : signature_(signature) {}

  // Reads those attributes that the graphs may depend on: all.
  Status Init(const tf::KernelConstruction& construction) override;

 protected:
  const Signature& signature() const { return signature_; }
  TF_DataType type() const { return type_; }

  // Runs the graph that `build` makes. It may depend on the attributes and on
  // the call's tensors: their shapes, and which of them the kernel has made.
  Status Run(const tf::KernelContext& context, const Call& call,
             const std::function<void(Builder*)>& build) const;

 private:
  const Signature& signature_;
  TF_DataType type_ = TF_FLOAT;
  std::string options_;  // the op and its attributes
};

// Registers K, constructed without arguments.
template <class K>
void Register(const char* op, TF_DataType type,
              const std::vector<const char*>& host_memory = {}) {
  tf::PrintRegistrationFailure(
      op, tf::RegisterKernel<K>(op, "GPU", type, 0, host_memory));
}

// For an op of stock TensorFlow, above the plugin's own kernel if it has one.
template <class K>
void RegisterAbove(const char* stock, TF_DataType type,
                   const std::vector<const char*>& host_memory = {}) {
  tf::PrintRegistrationFailure(
      stock, tf::RegisterKernel<K>(stock, "GPU", type, 1, host_memory));
}

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_
