// Call: one call of a kernel on the GPU, its tensors in device memory by their
// names, its outputs, its share of the device.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_CALL_CUDA_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_CALL_CUDA_H_

#include <memory>
#include <vector>

#include "backends/cuda/device.h"
#include "core/signature.h"
#include "dialects/common/inputs.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cuda {

class Call : public Inputs {
 public:
  using Inputs::Inputs;

  // Checked inputs; the device is there from here on.
  Status Begin(const tf::KernelContext& context);

  const Device& device() const { return *device_; }

  // Null where the op has no such argument, or it is absent or empty.
  template <class T>
  const T* In(const char* name) const {
    const tf::Tensor* tensor = Find(name);
    return tensor ? tensor->data<T>() : nullptr;
  }

  // The next output.
  Status Allocate(const tf::KernelContext& context, TF_DataType type,
                  const Shape& shape);
  // All outputs, of a signature that has no opaque ones.
  Status AllocateAll(const tf::KernelContext& context, TF_DataType type);

  // Of an output that was allocated; null where it is empty.
  template <class T>
  T* Out(size_t n) const {
    return outputs_[n].size() > 0 ? outputs_[n].template data<T>() : nullptr;
  }
  int64_t output_size(size_t n) const { return outputs_[n].size(); }

 private:
  std::vector<tf::Tensor> outputs_;
  std::unique_ptr<Device> device_;
};

// Registers K, constructed without arguments.
template <class K>
void Register(const char* op, TF_DataType type,
              const std::vector<const char*>& host_memory = {}) {
  tf::PrintRegistrationFailure(
      op, tf::RegisterKernel<K>(op, "GPU", type, 0, host_memory));
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_CALL_CUDA_H_
