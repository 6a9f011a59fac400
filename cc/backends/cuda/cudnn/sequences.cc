#include "backends/cuda/cudnn/sequences.h"

#include <string>

#include "backends/cuda/fused/tensors.h"
#include "backends/cuda/runtime/programs.h"

namespace tf_lstm_ops::cuda {
namespace {

// Runs a kernel of the program for types T and C, a thread for each of
// `numbers`.
template <class T, class C, class Arguments>
Status Run(const Device& device, const char* kernel, int64_t numbers,
           const Arguments& arguments) {
  if (numbers == 0) return Status();
  CUfunction function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      FindKernel(device,
                 {"kernels/sequences.cu",
                  {std::string("TF_LSTM_OPS_TYPE=") + TypeName<T>(),
                   std::string("TF_LSTM_OPS_CUDNN_TYPE=") + TypeName<C>()}},
                 kernel, &function));
  return device.Launch(function, numbers, arguments);
}

}  // namespace

template <class T>
Status MoveIn(const Device& device, const MoveRows<T, CudnnType<T>>& rows) {
  return Run<T, CudnnType<T>>(device, "move_in",
                              rows.outer * rows.rows * rows.width, rows);
}

template <class T>
Status MoveOut(const Device& device, const MoveRows<CudnnType<T>, T>& rows) {
  return Run<T, CudnnType<T>>(device, "move_out",
                              rows.outer * rows.rows * rows.width, rows);
}

template <class C>
Status Clear(const Device& device, const ClearPadding<C>& padding) {
  return Run<C, C>(device, "clear_padding",
                   padding.time * padding.batch * padding.width, padding);
}

template <class C>
Status Drop(const Device& device, const DropOutputs<C>& drop) {
  return Run<C, C>(device, "drop_outputs", drop.time * drop.rows * drop.width,
                   drop);
}

template Status MoveIn<float>(const Device&,
                              const MoveRows<float, CudnnType<float>>&);
template Status MoveOut<float>(const Device&,
                               const MoveRows<CudnnType<float>, float>&);
template Status MoveIn<double>(const Device&,
                               const MoveRows<double, CudnnType<double>>&);
template Status MoveOut<double>(const Device&,
                                const MoveRows<CudnnType<double>, double>&);
template Status MoveIn<Half>(const Device&,
                             const MoveRows<Half, CudnnType<Half>>&);
template Status MoveOut<Half>(const Device&,
                              const MoveRows<CudnnType<Half>, Half>&);
template Status MoveIn<BFloat16>(
    const Device&, const MoveRows<BFloat16, CudnnType<BFloat16>>&);
template Status MoveOut<BFloat16>(
    const Device&, const MoveRows<CudnnType<BFloat16>, BFloat16>&);

template Status Clear(const Device&, const ClearPadding<float>&);
template Status Clear(const Device&, const ClearPadding<double>&);
template Status Clear(const Device&, const ClearPadding<Half>&);
template Status Drop(const Device&, const DropOutputs<float>&);
template Status Drop(const Device&, const DropOutputs<double>&);
template Status Drop(const Device&, const DropOutputs<Half>&);
template Status Drop(const Device&, const DropOutputs<BFloat16>&);

}  // namespace tf_lstm_ops::cuda
