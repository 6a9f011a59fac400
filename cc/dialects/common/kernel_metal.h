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

// Registers class K, which has a default constructor, for the device "GPU". The
// named arguments stay in host memory. Prints errors.
template <class K>
void RegisterMetalKernel(const char* op, TF_DataType type,
                         const std::vector<const char*>& host_memory = {}) {
  tf::PrintRegistrationFailure(
      op, tf::RegisterKernel<K>(op, "GPU", type, 0, host_memory));
}

// The registrations that tf_lstm_ops_override_stock_on_metal makes.
std::vector<std::function<Status()>>& StockKernels();

// As RegisterMetalKernel, for an op of stock TensorFlow, when
// tf_lstm_ops_override_stock_on_metal is called. The priority is higher than
// that of the plugin's own kernel. `stock` and the names of arguments must live
// as long as the process.
template <class K>
void RegisterStockMetalKernel(
    const char* stock, TF_DataType type,
    const std::vector<const char*>& host_memory = {}) {
  StockKernels().push_back([=] {
    return tf::RegisterKernel<K>(stock, "GPU", type, 1, host_memory);
  });
}

}  // namespace tf_lstm_ops

// Registers the kernels of this library under stock names: until then, stock
// layers are those of TensorFlow and the plugin. A second call does nothing and
// returns the first result. Returns null, or the error message, which lives as
// long as the process.
extern "C" __attribute__((visibility("default"))) const char*
tf_lstm_ops_override_stock_on_metal();

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_KERNEL_METAL_H_
