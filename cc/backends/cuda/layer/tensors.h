// Operations on whole tensors in device memory: kernels/tensors.cu.
// kernels/tensor_arguments.h defines each operation. T is float, double, Half
// or BFloat16. Errors of all functions: those of FindKernel and of Device.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_LAYER_TENSORS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_LAYER_TENSORS_H_

#include "backends/cuda/kernels/tensor_arguments.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/types.h"

namespace tf_lstm_ops::cuda {

// From and To are T or ComputeType<T>.
template <class From, class To>
Status Copy(const Device& device, const CopyRows<From, To>& copy);

template <class T>
using DropNarrow = DropRows<T, T, T>;
template <class T>
using DropWide = DropRows<ComputeType<T>, ComputeType<T>, T>;
// E is T or ComputeType<T>.
template <class E, class T>
Status ComputeDropRows(const Device& device, const DropRows<E, E, T>& a);

template <class T>
Status ComputeAddedInputGrad(const Device& device, const AddedInputGrad<T>& a);
template <class T>
Status ComputeStepGrads(const Device& device, const StepGrads<T>& a);

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

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_LAYER_TENSORS_H_
