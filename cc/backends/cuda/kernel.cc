#include "backends/cuda/kernel.h"

#include <utility>

#include "backends/cuda/tf_stream.h"

namespace tf_lstm_ops::cuda {

Status Call::Begin(const tf::KernelContext& context) {
  TF_LSTM_OPS_RETURN_IF_ERROR(Fetch(context));
  CUstream stream = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(TfStream(context.get(), &stream));
  const auto allocate = [this, context](int64_t bytes, void** data) {
    tf::Tensor temporary;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateTemporary(bytes, &temporary));
    *data = temporary.data<void>();
    temporaries_.push_back(std::move(temporary));
    return Status();
  };
  return Device::Make(stream, allocate, &device_);
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
