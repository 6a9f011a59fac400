// MetalKernel: the base class of the kernels for a Metal device.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_

#include <functional>
#include <string>
#include <vector>

#include "backends/metal/device.h"
#include "core/signature.h"
#include "dialects/common/call_metal.h"
#include "tf/kernel.h"

namespace tf_lstm_ops {

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
