#include "backends/cuda/cudnn/sequences.h"

#include <string>

#include "backends/cuda/runtime/programs.h"
#include "backends/cuda/runtime/types.h"

namespace tf_lstm_ops::cuda {
namespace {

// Launches a kernel of sequences.cu for types T and C with one thread for each
// of `elements`.
template <class T, class C, class Arguments>
Status Run(const Device& device, const char* kernel, int64_t elements,
           const Arguments& arguments) {
  if (elements == 0) return Status();
  CUfunction function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      FindKernel(device,
                 {"kernels/sequences.cu",
                  {TypeMacro<T>(),
                   std::string("TF_LSTM_OPS_CUDNN_TYPE=") + TypeName<C>()}},
                 kernel, &function));
  return device.Launch(function, elements, arguments);
}

}  // namespace

template <class T>
Status ConvertToCudnn(const Device& device,
                      const ConvertRows<T, CudnnType<T>>& rows) {
  return Run<T, CudnnType<T>>(device, "to_cudnn",
                              rows.outer * rows.rows * rows.width, rows);
}

template <class T>
Status ConvertFromCudnn(const Device& device,
                        const ConvertRows<CudnnType<T>, T>& rows) {
  return Run<T, CudnnType<T>>(device, "from_cudnn",
                              rows.outer * rows.rows * rows.width, rows);
}

template <class C>
Status Clear(const Device& device, const ClearPadding<C>& padding) {
  return Run<C, C>(device, "clear_padding",
                   padding.time * padding.batch * padding.width, padding);
}

template <class C>
Status ComputeDropout(const Device& device, const DropOutputs<C>& drop) {
  return Run<C, C>(device, "drop_outputs", drop.time * drop.rows * drop.width,
                   drop);
}

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define TF_LSTM_OPS_INSTANTIATE(T)                                          \
  template Status ConvertToCudnn<T>(const Device&,                          \
                                    const ConvertRows<T, CudnnType<T>>&);   \
  template Status ConvertFromCudnn<T>(const Device&,                        \
                                      const ConvertRows<CudnnType<T>, T>&); \
  template Status ComputeDropout(const Device&, const DropOutputs<T>&);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE
// NOLINTEND(bugprone-macro-parentheses)

template Status Clear(const Device&, const ClearPadding<float>&);
template Status Clear(const Device&, const ClearPadding<double>&);
template Status Clear(const Device&, const ClearPadding<Half>&);

}  // namespace tf_lstm_ops::cuda
