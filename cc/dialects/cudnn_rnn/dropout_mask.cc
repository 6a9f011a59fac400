#include "dialects/cudnn_rnn/dropout_mask.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/dropout.h"
#include "core/float16.h"
#include "core/reserve.h"
#include "dialects/cudnn_rnn/signatures.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;

template <class T>
class MaskKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction&) override { return Status(); }

  Status Compute(const KernelContext& context) override {
    tf::Tensors inputs;
    Sizes unused;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.Inputs(CudnnRNNDropoutMask(), &inputs, &unused));
    ReserveHeader header;
    TF_LSTM_OPS_RETURN_IF_ERROR(ReadHeader(
        inputs[0].data<void>(), inputs[0].shape(), sizeof(T), &header));
    const Shape shape(
        {header.inner_layers, header.time, header.batch, header.width});
    std::vector<int64_t> bytes = shape.dims();
    bytes.push_back(sizeof(T));
    int64_t size = 0;
    const bool is_probability = header.dropout >= 0 && header.dropout <= 1;
    if (header.width < 1 || !is_probability || !CheckedProduct(bytes, &size)) {
      return InvalidArgument("reserve_space holds sizes that no call has: ",
                             shape.ToString());
    }
    Tensor mask;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(0, tf::kDataType<T>, shape, &mask));
    Draw(header, mask.data<T>());
    return Status();
  }

 private:
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;

  static void Draw(const ReserveHeader& header, T* mask) {
    const int64_t rows = int64_t{header.time} * header.batch;
    // The header may have any width if no element of that row exists.
    if (header.inner_layers * rows == 0) return;
    const DropoutMask draws(header.dropout_key, header.dropout, rows,
                            header.width);
    std::vector<C> row(header.width);
    for (int64_t n = 0; n < header.inner_layers * rows; ++n) {
      std::fill(row.begin(), row.end(), C(1));
      if (header.dropout > 0) {
        draws.Apply(n / rows, n % rows, row.data(), row.data());
      }
      mask = std::transform(row.begin(), row.end(), mask, &Rounded);
    }
  }

  static T Rounded(C value) {
    if constexpr (std::is_same_v<T, C>) {
      return value;
    } else {
      return T::FromFloat(value);
    }
  }
};

}  // namespace

template <class T>
void RegisterDropoutMask(const char* device) {
  const char* op = CudnnRNNDropoutMask().op;
  tf::PrintRegistrationFailure(
      op, tf::RegisterKernel<MaskKernel<T>>(op, device, tf::kDataType<T>, 0,
                                            {"reserve_space", "mask"}));
}

template void RegisterDropoutMask<float>(const char*);
template void RegisterDropoutMask<double>(const char*);
template void RegisterDropoutMask<Half>(const char*);
template void RegisterDropoutMask<BFloat16>(const char*);

}  // namespace tf_lstm_ops::cudnn_rnn
