// Kernel: the base class of op kernels, over the TensorFlow C API.
#ifndef TF_LSTM_OPS_TF_KERNEL_H_
#define TF_LSTM_OPS_TF_KERNEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/attribute_reader.h"
#include "core/float16.h"
#include "core/shape.h"
#include "core/signature.h"
#include "core/status.h"
#include "tf/c_api.h"
#include "tf/status.h"

namespace tf_lstm_ops::tf {

template <class T>
inline constexpr TF_DataType kDataType = TF_FLOAT;
template <>
inline constexpr TF_DataType kDataType<double> = TF_DOUBLE;
template <>
inline constexpr TF_DataType kDataType<Half> = TF_HALF;
template <>
inline constexpr TF_DataType kDataType<BFloat16> = TF_BFLOAT16;

// A tensor of a kernel's call.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TF_Tensor* tensor) : tensor_(tensor) {}

  Shape shape() const;
  int64_t size() const { return TF_TensorElementCount(tensor_.get()); }
  template <class T>
  T* data() const {
    return static_cast<T*>(TF_TensorData(tensor_.get()));
  }

 private:
  struct Delete {
    void operator()(TF_Tensor* tensor) const { TF_DeleteTensor(tensor); }
  };
  std::unique_ptr<TF_Tensor, Delete> tensor_;
};

class KernelConstruction : public AttributeReader {
 public:
  explicit KernelConstruction(TF_OpKernelConstruction* construction)
      : construction_(construction) {}
  Status GetAttr(const char* name, float* value) const override;
  Status GetAttr(const char* name, bool* value) const override;
  Status GetAttr(const char* name, int64_t* value) const override;
  Status GetAttr(const char* name, std::string* value) const override;
  Status GetAttr(const char* name, TF_DataType* value) const;

 private:
  TF_OpKernelConstruction* construction_;
};

class KernelContext {
 public:
  explicit KernelContext(TF_OpKernelContext* context) : context_(context) {}

  // All inputs, checked against the signature.
  Status Inputs(const Signature& signature, std::vector<Tensor>* inputs,
                Sizes* sizes) const;
  Status Input(int index, Tensor* input) const;
  // All outputs of a signature that has no opaque ones.
  Status Outputs(const Signature& signature, const std::vector<Tensor>& inputs,
                 const Sizes& sizes, TF_DataType type,
                 std::vector<Tensor>* outputs) const;
  Status AllocateOutput(int index, TF_DataType type, const Shape& shape,
                        Tensor* output) const;

  // Bytes of the device's memory, for this call.
  Status AllocateTemporary(int64_t bytes, Tensor* temporary) const;

  // intra_op_parallelism_threads of the session, 0 where it is not set.
  int ConfiguredThreads() const;
  // That of a pluggable device; what it points to is the plugin's own affair.
  Status Stream(SP_Stream* stream) const;
  TF_OpKernelContext* get() const { return context_; }

 private:
  TF_OpKernelContext* context_;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Reads the attributes.
  virtual Status Init(const KernelConstruction& construction) = 0;
  // May throw std::bad_alloc; it becomes a ResourceExhausted error.
  virtual Status Compute(const KernelContext& context) = 0;

 protected:
  // As configured when the kernel first ran: reading it takes microseconds.
  int ConfiguredThreads(const KernelContext& context);

 private:
  std::atomic<int> configured_threads_{-1};
};

using MakeKernel = std::unique_ptr<Kernel> (*)();

void* CreateKernel(TF_OpKernelConstruction* construction, MakeKernel make);
void ComputeKernel(void* kernel, TF_OpKernelContext* context);
void DestroyKernel(void* kernel);
// Arguments in `host_memory` stay there where the device has memory of its own.
Status RegisterKernelFunctions(const char* op, const char* device,
                               TF_DataType type, int priority,
                               const std::vector<const char*>& host_memory,
                               void* (*create)(TF_OpKernelConstruction*));
void PrintRegistrationFailure(const char* op, const Status& status);

// Registers class K for values of the attribute T. Of all kernels that fit,
// TensorFlow takes the one of the highest priority; its own have 0.
template <class K>
Status RegisterKernel(const char* op, const char* device, TF_DataType type,
                      int priority,
                      const std::vector<const char*>& host_memory = {}) {
  return RegisterKernelFunctions(
      op, device, type, priority, host_memory,
      [](TF_OpKernelConstruction* construction) {
        return CreateKernel(construction, []() -> std::unique_ptr<Kernel> {
          return std::make_unique<K>();
        });
      });
}

// While the library is loaded, where nobody takes a status.
template <class K>
void RegisterKernel(const char* op, const char* device, TF_DataType type) {
  PrintRegistrationFailure(op, RegisterKernel<K>(op, device, type, 0));
}

}  // namespace tf_lstm_ops::tf

#endif  // TF_LSTM_OPS_TF_KERNEL_H_
