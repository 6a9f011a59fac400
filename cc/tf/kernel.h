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
#include "core/inline_vector.h"
#include "core/shape.h"
#include "core/signature.h"
#include "core/status.h"
#include "tf/status.h"
#include "tf/tensorflow_api.h"

namespace tf_lstm_ops::tf {

// TensorFlow's data type for element type T.
template <class T>
inline constexpr TF_DataType kDataType = TF_FLOAT;
template <>
inline constexpr TF_DataType kDataType<double> = TF_DOUBLE;
template <>
inline constexpr TF_DataType kDataType<Half> = TF_HALF;
template <>
inline constexpr TF_DataType kDataType<BFloat16> = TF_BFLOAT16;

// A tensor of a call. Owns a reference to TensorFlow's buffer.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TF_Tensor* tensor) : tensor_(tensor) {}

  // All members but the constructors need a tensor.
  Shape shape() const;
  void CopyShape(Shape* to) const;  // faster than *to = shape()
  int64_t size() const { return TF_TensorElementCount(tensor_.get()); }
  size_t bytes() const { return TF_TensorByteSize(tensor_.get()); }
  // A view of the elements, in host or device memory.
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

using Tensors = InlineVector<Tensor, kInlineArguments>;

// Reads the attributes of a kernel. Does not own `construction`.
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

// One call of a kernel, on the thread that creates the object. Does not own
// `context`.
class KernelContext {
 public:
  using Tensor = tf::Tensor;
  using Tensors = tf::Tensors;
  using Type = TF_DataType;
  template <class T>
  static constexpr TF_DataType kType = kDataType<T>;
  // Whether a kernel keeps packed weights between calls.
  static constexpr bool kKeepsWeights = true;

  explicit KernelContext(TF_OpKernelContext* context);

  // Fetches all inputs, checks them against the signature and sets `sizes`.
  // Errors: those of CheckInputs, and TensorFlow's.
  Status Inputs(const Signature& signature, Tensors* inputs,
                Sizes* sizes) const;
  // Fetches one input. Errors: TensorFlow's.
  Status Input(int index, Tensor* input) const;
  // Allocates all outputs of a signature without opaque dimensions. Errors:
  // those of AllocateOutput.
  Status Outputs(const Signature& signature, const Tensors& inputs,
                 const Sizes& sizes, TF_DataType type, Tensors* outputs) const;
  // Allocates one output. Errors: TensorFlow's; Unimplemented where the rank is
  // above Shape::kMaxDims.
  Status AllocateOutput(int index, TF_DataType type, const Shape& shape,
                        Tensor* output) const;

  // Allocates `bytes` bytes of device memory, which live as long as
  // `temporary`. Errors: TensorFlow's.
  Status AllocateTemporary(int64_t bytes, Tensor* temporary) const;

  // Returns intra_op_parallelism_threads of the session, 0 if not set or if
  // TensorFlow runs the kernel to fold constants.
  int ConfiguredThreads() const;
  // Sets `stream` to the stream of a pluggable device. The plugin defines the
  // object that it points to. Errors: TensorFlow's.
  Status Stream(SP_Stream* stream) const;
  TF_OpKernelContext* get() const { return context_; }

 private:
  TF_OpKernelContext* context_;
  // The thread's, because a call uses it many times and creating one takes an
  // allocation. It is OK between two uses.
  const TfStatus* status_;
};

// The base class of all kernels. TensorFlow may call Compute from several
// threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Reads the attributes. Where it fails, each call of the kernel returns its
  // error.
  virtual Status Init(const KernelConstruction& construction) = 0;
  // Runs one call. std::bad_alloc becomes a ResourceExhausted error.
  virtual Status Compute(const KernelContext& context) = 0;

 protected:
  // Returns intra_op_parallelism_threads of the session in which the kernel
  // first ran, 0 if not set. The value is cached, because reading it takes
  // microseconds.
  int ConfiguredThreads(const KernelContext& context);

 private:
  std::atomic<int> configured_threads_{-1};
};

using MakeKernel = std::unique_ptr<Kernel> (*)();

// The functions that TensorFlow calls to create, run and destroy a kernel. A
// null kernel is one for which there was no memory. No exceptions leave them.
void* CreateKernel(TF_OpKernelConstruction* construction, MakeKernel make);
void ComputeKernel(void* kernel, TF_OpKernelContext* context);
void DestroyKernel(void* kernel);
// Registers a kernel of `op` for one value of the attribute T. Arguments named
// in `host_memory` stay in host memory. Errors: TensorFlow's.
Status RegisterKernelFunctions(const char* op, const char* device,
                               TF_DataType type, int priority,
                               const std::vector<const char*>& host_memory,
                               void* (*create)(TF_OpKernelConstruction*));
// Prints an error to stderr. Prints nothing if `status` is OK.
void PrintRegistrationFailure(const char* op, const Status& status);

// Registers class K, which has a default constructor, for one value of the
// attribute T. TensorFlow uses the matching kernel of the highest priority; its
// own kernels have priority 0. Errors: TensorFlow's.
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

// For static initialisation: registers class K with priority 0 and prints an
// error instead of returning it.
template <class K>
void RegisterKernel(const char* op, const char* device, TF_DataType type) {
  PrintRegistrationFailure(op, RegisterKernel<K>(op, device, type, 0));
}

}  // namespace tf_lstm_ops::tf

#endif  // TF_LSTM_OPS_TF_KERNEL_H_
