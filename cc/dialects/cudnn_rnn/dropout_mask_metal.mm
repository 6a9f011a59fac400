// The kernel of CudnnRNNDropoutMask for the reserve_space of the Metal kernels (reserve_metal.h).
#include <cstdint>
#include <cstring>

#include "core/dropout.h"
#include "core/float16.h"
#include "core/reserve.h"
#include "dialects/common/inputs.h"
#include "dialects/common/kernel_metal.h"
#include "dialects/cudnn_rnn/reserve_metal.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;

float ToFloat(float value) { return value; }
template <class T>
float ToFloat(T value) {
  return value.ToFloat();
}
void SetFloat(float value, float* to) { *to = value; }
template <class T>
void SetFloat(float value, T* to) {
  *to = T::FromFloat(value);
}

// Both tensors are in host memory, because the header determines the shape of the mask.
template <class T>
class DropoutMaskKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction&) override { return Status(); }

  Status Compute(const KernelContext& context) override {
    Inputs call(CudnnRNNDropoutMask());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    const tf::Tensor& reserve = *call.Find("reserve_space");
    ReserveHeader header;
    Shape shape;
    TF_LSTM_OPS_RETURN_IF_ERROR(Read(reserve, &header, &shape));
    int64_t size = 1;
    for (const int64_t extent : shape.dims()) size *= extent;
    tf::Tensor mask;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(0, tf::kDataType<T>, shape, &mask));
    const double scale = DropoutMask(0, header.dropout, 0, 0).scale();
    // The saved mask is the last of the values before the header.
    const T* saved = reserve.data<T>() + reserve.size() - kMetalHeaderSize - size;
    for (int64_t k = 0; k < size; ++k) {
      double multiplier = 1;
      if (header.dropout > 0) multiplier = ToFloat(saved[k]) > 0 ? scale : 0;
      SetFloat(static_cast<float>(multiplier), mask.data<T>() + k);
    }
    return Status();
  }

 private:
  // Reads the header and the shape of the mask. Errors: InvalidArgument where `reserve` is not the
  // output of a forward op.
  static Status Read(const tf::Tensor& reserve, ReserveHeader* header, Shape* shape) {
    const int64_t values_size = reserve.size() - kMetalHeaderSize;
    uint8_t bytes[kMetalHeaderSize] = {};
    for (int64_t k = 0; k < kMetalHeaderSize && values_size >= 0; ++k) {
      const float byte = ToFloat(reserve.data<T>()[values_size + k]);
      if (byte >= 0 && byte < 256) bytes[k] = static_cast<uint8_t>(byte);
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(ReadHeader(bytes, reserve.shape(), sizeof(T), header));
    *shape = Shape({header->inner_layers, header->time, header->batch, header->width});
    int64_t size = 0;
    if (header->width < 1 || !CheckedProduct(shape->dims(), &size) ||
        (header->dropout > 0 && size > values_size)) {
      return InvalidArgument("reserve_space holds sizes that no call has: ", shape->ToString());
    }
    return Status();
  }
};

template <class T>
bool RegisterMask() {
  RegisterMetalKernel<DropoutMaskKernel<T>>(CudnnRNNDropoutMask().op, tf::kDataType<T>,
                                            {"reserve_space", "mask"});
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterMask<float>(), RegisterMask<Half>(),
                                             metal::HasBFloat16() && RegisterMask<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
