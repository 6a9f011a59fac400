#include "dialects/common/call_cuda.h"

#include <utility>

#include "tf/cuda/stream.h"

namespace tf_lstm_ops::cuda {
namespace {

// TensorFlow's: it serves others on the same stream once a piece is given back.
class Temporaries : public Memory {
 public:
  explicit Temporaries(const tf::KernelContext& context) : context_(context) {}

  Status Allocate(int64_t bytes, void** data) override {
    tf::Tensor piece;
    TF_LSTM_OPS_RETURN_IF_ERROR(context_.AllocateTemporary(bytes, &piece));
    *data = piece.data<void>();
    pieces_.push_back(std::move(piece));
    return Status();
  }
  size_t pieces() const override { return pieces_.size(); }
  void GiveBack(size_t pieces) override {
    while (pieces_.size() > pieces) pieces_.pop_back();
  }

 private:
  const tf::KernelContext context_;
  std::vector<tf::Tensor> pieces_;
};

}  // namespace

Status Call::Begin(const tf::KernelContext& context) {
  TF_LSTM_OPS_RETURN_IF_ERROR(Fetch(context));
  CUstream stream = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(TfStream(context.get(), &stream));
  return Device::Make(stream, std::make_unique<Temporaries>(context), &device_);
}

Status Call::Allocate(const tf::KernelContext& context, TF_DataType type,
                      const Shape& shape) {
  const auto index = static_cast<int>(outputs_.size());
  outputs_.emplace_back();
  return context.AllocateOutput(index, type, shape, &outputs_.back());
}

Status Call::AllocateAll(const tf::KernelContext& context, TF_DataType type) {
  return context.Outputs(signature, inputs, sizes, type, &outputs_);
}

}  // namespace tf_lstm_ops::cuda
