#include "dialects/common/call_cuda.h"

#include <utility>

#include "tf/cuda/stream.h"

namespace tf_lstm_ops {
namespace {

// Temporary tensors of a kernel's call. TensorFlow reuses their memory for
// later work on the same stream once they are freed.
class Temporaries : public cuda::Memory {
 public:
  explicit Temporaries(const tf::KernelContext& context) : context_(context) {}

  Status Allocate(int64_t bytes, void** data) override {
    tf::Tensor tensor;
    TF_LSTM_OPS_RETURN_IF_ERROR(context_.AllocateTemporary(bytes, &tensor));
    *data = tensor.data<void>();
    tensors_.push_back(std::move(tensor));
    return Status();
  }
  size_t blocks() const override { return tensors_.size(); }
  void FreeAfter(size_t blocks) override {
    while (tensors_.size() > blocks) tensors_.pop_back();
  }

 private:
  const tf::KernelContext context_;
  std::vector<tf::Tensor> tensors_;
};

}  // namespace

Status MakeCudaDevice(const tf::KernelContext& context,
                      std::unique_ptr<cuda::Device>* device) {
  void* stream = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(tf::CudaStream(context.get(), &stream));
  return cuda::Device::Make(static_cast<CUstream>(stream),
                            std::make_unique<Temporaries>(context), device);
}

}  // namespace tf_lstm_ops
