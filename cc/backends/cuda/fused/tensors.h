// Operations on whole tensors in device memory: kernels/tensors.cu and
// kernels/host_bytes.cu. kernels/tensor_arguments.h defines each operation.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_TENSORS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_TENSORS_H_

#include "backends/cuda/kernels/tensor_arguments.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/types.h"

namespace tf_lstm_ops::cuda {

// Errors of all functions: those of FindKernel and of Device.

// T is float, double, Half or BFloat16; From and To are T or ComputeType<T>.
template <class From, class To>
Status Copy(const Device& device, const CopyRows<From, To>& copy);

// Copies a few bytes from host memory to device memory. They are passed as
// kernel parameters. The caller may therefore change them after the call, and a
// CUDA graph contains them.
Status CopyBytesFromHost(const Device& device, const void* from, int64_t bytes,
                         void* to);
template <class T>
Status CopyFromHost(const Device& device, const T* from, int64_t size, T* to) {
  return CopyBytesFromHost(device, from, size * static_cast<int64_t>(sizeof(T)),
                           to);
}

template <class T>
Status ComputeDropRows(const Device& device, const DropRows<T>& a);
template <class T>
Status ComputeDropRowsGrad(const Device& device,
                           const DropRowsGrad<T, ComputeType<T>>& a);
template <class T>
Status ComputeAddedInputGrad(const Device& device, const AddedInputGrad<T>& a);
template <class T>
Status ComputeStepGrads(const Device& device, const StepGrads<T>& a);

// The kernels first_rows and add_to_last_rows of EndRows.
template <class T>
Status CopyFirstRows(const Device& device, const EndRows<T>& a);
template <class T>
Status AddToLastRows(const Device& device, const EndRows<T>& a);

// Sets `agree` to whether no difference of `size` elements exceeds 1/16 of the
// largest absolute expected value. Elements whose expected value is not finite
// are not compared: a gradient in half may overflow. Waits for the device.
template <class T>
Status CompareElements(const Device& device, const T* found, const T* expected,
                       int64_t size, bool* agree);

// A matrix [rows, columns] whose rows are `stride` apart.
struct SumShape {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
};
// to [columns] = the sums of the columns. They are zero if there are no rows.
// The order of the additions depends on the shape only.
template <class T>
Status Sum(const Device& device, const T* from, const SumShape& shape, T* to);
template <class T>
Status SumPartial(const Device& device, const ComputeType<T>* from,
                  const SumShape& shape, T* to);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_TENSORS_H_
