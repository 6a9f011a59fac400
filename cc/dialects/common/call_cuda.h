// CudaCall: one call of an op on a CUDA GPU. It has the tensors in device
// memory, by name, and the device.
#ifndef TF_LSTM_OPS_DIALECTS_COMMON_CALL_CUDA_H_
#define TF_LSTM_OPS_DIALECTS_COMMON_CALL_CUDA_H_

#include <memory>
#include <vector>

#include "backends/cuda/runtime/device.h"
#include "core/layer_direction.h"
#include "dialects/common/inputs.h"
#include "tf/cuda/stream.h"
#include "tf/kernel.h"

namespace tf_lstm_ops {

// Temporary tensors of a kernel's call. TensorFlow reuses their memory for
// later work on the same stream once they are freed.
class Temporaries : public cuda::Memory {
 public:
  explicit Temporaries(const tf::KernelContext& context) : context_(context) {}

  Status Allocate(int64_t bytes, void** data) override {
    tf::Tensor& tensor = tensors_.emplace_back();
    TF_LSTM_OPS_RETURN_IF_ERROR(context_.AllocateTemporary(bytes, &tensor));
    *data = tensor.data<void>();
    return Status();
  }

 private:
  const tf::KernelContext context_;
  tf::Tensors tensors_;
};

// T is the element type of the op's tensors. The members that problem.h uses
// have the same names as those of CpuCall. Pointers are views of TensorFlow's
// tensors, which live as long as this object.
template <class T>
class CudaCall : public Inputs<> {
 public:
  using Inputs<>::Inputs;

  // Fetches and checks the inputs. Call it before all other members. Errors:
  // those of CheckInputs; FailedPrecondition where there is no CUDA stream or
  // no driver; Internal.
  Status Fetch(const tf::KernelContext& context) {
    TF_LSTM_OPS_RETURN_IF_ERROR(Inputs<>::Fetch(context));
    void* stream = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(tf::CudaStream(context.get(), &stream));
    return cuda::Device::Make(static_cast<CUstream>(stream),
                              std::make_unique<Temporaries>(context), &device_);
  }
  const cuda::Device& device() const { return *device_; }

  // Returns the elements of an input. Null where the op has no such input or it
  // is absent. They lie in host memory where the kernel is registered so.
  template <class E = T, class Key>
  const E* Data(Key key) const {
    const tf::Tensor* tensor = Find(key);
    return tensor ? tensor->data<E>() : nullptr;
  }
  const bool* Mask(const char* name) const { return Data<bool>(name); }
  template <class Key>
  const T* In(Key key) const {
    return Data(key);
  }
  // The size is not used. CpuCall converts that many elements.
  template <class Key>
  const T* In(Key key, int64_t) const {
    return Data(key);
  }
  template <class Key>
  const T* SavedIn(Key key, int64_t = 0) const {
    return Data(key);
  }
  template <class Key, class Layout>
  GateMatrices<const T> Weights(Key key, int64_t begin, int64_t,
                                const Layout& layout) const {
    return layout(Data(key) + begin);
  }

  // Allocates the next output.
  Status Allocate(const tf::KernelContext& context, const Shape& shape,
                  TF_DataType type = tf::kDataType<T>) {
    const auto index = static_cast<int>(outputs_.size());
    return context.AllocateOutput(index, type, shape, &outputs_.emplace_back());
  }
  // Allocates all outputs of a signature without opaque dimensions.
  Status AllocateAll(const tf::KernelContext& context) {
    return context.Outputs(signature, inputs, sizes, tf::kDataType<T>,
                           &outputs_);
  }
  // Returns output n, which must have been allocated. Null where it is empty.
  template <class E = T>
  E* Out(size_t n) const {
    return output_size(n) > 0 ? outputs_[n].template data<E>() : nullptr;
  }
  int64_t output_size(size_t n) const { return outputs_[n].size(); }
  Status ZeroOutput(size_t n) const {
    return device().Zero(Out(n), output_size(n));
  }

 private:
  tf::Tensors outputs_;
  std::unique_ptr<cuda::Device> device_;
};

// Registers kernel K, which has a default constructor, for the device "GPU".
// The named arguments stay in host memory.
template <class K>
void RegisterCudaKernel(const char* op, TF_DataType type,
                        const std::vector<const char*>& host_memory = {}) {
  tf::PrintRegistrationFailure(
      op, tf::RegisterKernel<K>(op, "GPU", type, 0, host_memory));
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_DIALECTS_COMMON_CALL_CUDA_H_
