#include "tf/kernel.h"

#include <cstdio>
#include <string_view>
#include <utility>

namespace tf_lstm_ops::tf {
namespace {

// Whether TensorFlow has a function of TF_LSTM_OPS_OPTIONAL.
template <typename Function>
bool Has(Function* function) {
  return function != nullptr;
}

Status Missing(const char* function) {
  return MakeStatus(Code::kUnimplemented,
                    "tf_lstm_ops: this TensorFlow has no ", function);
}

// Reads a protocol buffers message field by field.
class ProtoReader {
 public:
  ProtoReader(const void* data, size_t length)
      : at_(static_cast<const uint8_t*>(data)), end_(at_ + length) {}

  // The value of the last varint field with this number, or 0.
  uint64_t Varint(uint64_t field) {
    uint64_t found = 0;
    while (at_ < end_) {
      const uint64_t tag = Next();
      switch (tag & 7) {
        case 0: {
          const uint64_t value = Next();
          if (tag >> 3 == field) found = value;
          break;
        }
        case 1:
          Skip(8);
          break;
        case 2:
          Skip(Next());
          break;
        case 5:
          Skip(4);
          break;
        default:
          return found;
      }
    }
    return found;
  }

 private:
  uint64_t Next() {
    uint64_t value = 0;
    for (int shift = 0; at_ < end_ && shift < 64; shift += 7) {
      const uint8_t byte = *at_++;
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if ((byte & 128) == 0) break;
    }
    return value;
  }
  void Skip(uint64_t bytes) {
    at_ = bytes > static_cast<uint64_t>(end_ - at_) ? end_ : at_ + bytes;
  }

  const uint8_t* at_;
  const uint8_t* end_;
};

// A kernel and the result of its construction and Init. Where they fail, each
// call returns the error. If the kernel's construction failed instead,
// host-memory arguments would stay in the rendezvous of eager mode, and the
// next call of the op on a GPU would receive them.
struct MadeKernel {
  std::unique_ptr<Kernel> kernel;
  Status init;
};

}  // namespace

KernelContext::KernelContext(TF_OpKernelContext* context) : context_(context) {
  thread_local const TfStatus status;
  status_ = &status;
}

Shape Tensor::shape() const {
  Shape shape;
  CopyShape(&shape);
  return shape;
}

void Tensor::CopyShape(Shape* to) const {
  to->set_rank(TF_NumDims(tensor_.get()));
  for (int k = 0; k < to->rank(); ++k) {
    to->set_dim(k, TF_Dim(tensor_.get(), k));
  }
}

Status KernelConstruction::GetAttr(const char* name, float* value) const {
  const TfStatus status;
  TF_OpKernelConstruction_GetAttrFloat(construction_, name, value,
                                       status.get());
  return status.ToStatus();
}

Status KernelConstruction::GetAttr(const char* name, bool* value) const {
  const TfStatus status;
  TF_Bool raw = 0;
  TF_OpKernelConstruction_GetAttrBool(construction_, name, &raw, status.get());
  *value = raw != 0;
  return status.ToStatus();
}

Status KernelConstruction::GetAttr(const char* name, int64_t* value) const {
  const TfStatus status;
  TF_OpKernelConstruction_GetAttrInt64(construction_, name, value,
                                       status.get());
  return status.ToStatus();
}

Status KernelConstruction::GetAttr(const char* name, TF_DataType* value) const {
  const TfStatus status;
  TF_OpKernelConstruction_GetAttrType(construction_, name, value, status.get());
  return status.ToStatus();
}

Status KernelConstruction::GetAttr(const char* name, std::string* value) const {
  const TfStatus status;
  char text[64] = {};
  TF_OpKernelConstruction_GetAttrString(construction_, name, text,
                                        sizeof text - 1, status.get());
  *value = text;
  return status.ToStatus();
}

Status KernelContext::Inputs(const Signature& signature, Tensors* inputs,
                             Sizes* sizes) const {
  Shapes shapes;
  for (size_t n = 0; n < signature.inputs.size(); ++n) {
    Tensor* input = &inputs->emplace_back();
    TF_LSTM_OPS_RETURN_IF_ERROR(Input(static_cast<int>(n), input));
    input->CopyShape(&shapes.emplace_back());
  }
  return CheckInputs(signature, shapes, sizes);
}

Status KernelContext::Input(int index, Tensor* input) const {
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context_, index, &tensor, status_->get());
  if (!status_->ok()) return status_->Take();
  *input = Tensor(tensor);
  return Status();
}

Status KernelContext::Outputs(const Signature& signature, const Tensors& inputs,
                              const Sizes& sizes, TF_DataType type,
                              Tensors* outputs) const {
  for (size_t n = 0; n < signature.outputs.size(); ++n) {
    const Argument& output = signature.outputs[n];
    TF_LSTM_OPS_RETURN_IF_ERROR(AllocateOutput(
        static_cast<int>(n), type,
        output.like ? inputs[signature.InputIndex(output.like)].shape()
                    : OutputShape(output, sizes),
        &outputs->emplace_back()));
  }
  return Status();
}

Status KernelContext::AllocateOutput(int index, TF_DataType type,
                                     const Shape& shape, Tensor* output) const {
  if (shape.rank() > Shape::kMaxDims) {
    return MakeStatus(Code::kUnimplemented, "tf_lstm_ops: output ", index,
                      " would have rank ", shape.rank(), ", the largest is ",
                      Shape::kMaxDims);
  }
  // TensorFlow ignores the length and uses the shape.
  TF_Tensor* tensor = TF_AllocateOutput(context_, index, type, shape.data(),
                                        shape.rank(), 0, status_->get());
  if (!status_->ok()) return status_->Take();
  *output = Tensor(tensor);
  return Status();
}

Status KernelContext::AllocateTemporary(int64_t bytes,
                                        Tensor* temporary) const {
  const TfStatus status;
  TF_AllocatorAttributes on_device = {sizeof on_device, 0};
  TF_Tensor* tensor =
      TF_AllocateTemp(context_, TF_INT8, &bytes, 1, &on_device, status.get());
  if (status.ok()) *temporary = Tensor(tensor);
  return status.ToStatus();
}

int KernelContext::ConfiguredThreads() const {
  if (!Has(&TF_GetStepId) || !Has(&TF_GetSerializedConfigProto)) return 0;
  // The steps in which TensorFlow folds constants: while it infers shapes, and
  // while it optimises a graph. They have no session, and
  // TF_GetSerializedConfigProto would read a null pointer.
  const int64_t step = TF_GetStepId(context_);
  if (step == -1 || step == 0) return 0;

  const TfStatus status;
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GetSerializedConfigProto(context_, buffer, status.get());
  constexpr uint64_t kIntraOpParallelismThreads = 2;  // in config.proto
  const int threads =
      status.ok() ? static_cast<int>(ProtoReader(buffer->data, buffer->length)
                                         .Varint(kIntraOpParallelismThreads))
                  : 0;
  TF_DeleteBuffer(buffer);
  return threads;
}

Status KernelContext::Stream(SP_Stream* stream) const {
  if (!Has(&TF_GetStream)) return Missing("TF_GetStream");
  const TfStatus status;
  *stream = TF_GetStream(context_, status.get());
  return status.ToStatus();
}

int Kernel::ConfiguredThreads(const KernelContext& context) {
  int threads = configured_threads_.load(std::memory_order_relaxed);
  if (threads < 0) {
    threads = context.ConfiguredThreads();
    configured_threads_.store(threads, std::memory_order_relaxed);
  }
  return threads;
}

void* CreateKernel(TF_OpKernelConstruction* construction, MakeKernel make) {
  auto* made = new (std::nothrow) MadeKernel;
  if (made == nullptr) return nullptr;
  made->init = CatchExceptions([&] {
    made->kernel = make();
    return made->kernel->Init(KernelConstruction(construction));
  });
  return made;
}

void ComputeKernel(void* kernel, TF_OpKernelContext* context) {
  const auto* made = static_cast<const MadeKernel*>(kernel);
  const Status status = CatchExceptions([&]() -> Status {
    if (made == nullptr) throw std::bad_alloc();
    TF_LSTM_OPS_RETURN_IF_ERROR(made->init);
    return made->kernel->Compute(KernelContext(context));
  });
  if (!status.ok()) {
    const TfStatus failure;
    SetStatus(status, failure.get());
    TF_OpKernelContext_Failure(context, failure.get());
  }
}

void DestroyKernel(void* kernel) { delete static_cast<MadeKernel*>(kernel); }

Status RegisterKernelFunctions(const char* op, const char* device,
                               TF_DataType type, int priority,
                               const std::vector<const char*>& host_memory,
                               void* (*create)(TF_OpKernelConstruction*)) {
  // All memory of a CPU is host memory.
  const bool needs_host_memory =
      !host_memory.empty() && std::string_view(device) != "CPU";
  if (needs_host_memory && !Has(&TF_KernelBuilder_HostMemory)) {
    return Missing("TF_KernelBuilder_HostMemory");
  }
  if (priority != 0 && !Has(&TF_KernelBuilder_Priority)) {
    return Missing("TF_KernelBuilder_Priority");
  }
  const TfStatus status;
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder(op, device, create, &ComputeKernel, &DestroyKernel);
  TF_KernelBuilder_TypeConstraint(builder, "T", type, status.get());
  if (priority != 0) TF_KernelBuilder_Priority(builder, priority);
  for (const char* argument : host_memory) {
    if (Has(&TF_KernelBuilder_HostMemory)) {
      TF_KernelBuilder_HostMemory(builder, argument);
    }
  }
  if (status.ok()) TF_RegisterKernelBuilder(op, builder, status.get());
  return status.ToStatus();
}

void PrintRegistrationFailure(const char* op, const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "tf_lstm_ops: cannot register a kernel of %s: %s\n", op,
               status.message().c_str());
}

}  // namespace tf_lstm_ops::tf
