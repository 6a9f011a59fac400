// What is done to whole tensors around the steps of a layer:
// kernels/tensors.cu, kernels/host_bytes.cu.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_FUSED_TENSORS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_FUSED_TENSORS_H_

#include <string>
#include <type_traits>

#include "backends/cuda/kernels/rnn_arguments.h"
#include "backends/cuda/runtime/device.h"
#include "core/float16.h"

namespace tf_lstm_ops::cuda {

// What tensors of type T are computed in.
template <class T>
using ComputeType =
    std::conditional_t<std::is_same_v<T, double>, double, float>;

// As device code calls a type.
template <class T>
const char* TypeName() {
  return std::is_same_v<T, Half>       ? "Half"
         : std::is_same_v<T, BFloat16> ? "BFloat16"
         : std::is_same_v<T, double>   ? "double"
                                       : "float";
}
// The macro that makes a program one for tensors of type T.
template <class T>
std::string TypeMacro() {
  return std::string("TF_LSTM_OPS_TYPE=") + TypeName<T>();
}

// Rows of numbers by the type of what is read and written; see CopyRows.
template <class From, class To>
Status Copy(const Device& device, const CopyRows<From, To>& copy);

// A few bytes of the host's, which are handed over as parameters of kernels:
// they may change once this has returned, and a CUDA graph keeps them.
Status CopyBytesFromHost(const Device& device, const void* from, int64_t bytes,
                         void* to);
template <class T>
Status CopyFromHost(const Device& device, const T* from, int64_t size, T* to) {
  return CopyBytesFromHost(device, from, size * static_cast<int64_t>(sizeof(T)),
                           to);
}

// Rows as the gates see them, and its gradient.
template <class T>
Status See(const Device& device, const SeenRows<T>& seen);
template <class T>
Status AddGradient(const Device& device, const AddSeen<T, ComputeType<T>>& add);

template <class T>
Status PassGradient(const Device& device,
                    const PassToInput<T, ComputeType<T>>& pass);

// What each row of the batch reads first; adds to what it writes last.
template <class T>
Status FirstRows(const Device& device, const EndRows<T>& rows);
template <class T>
Status AddToLastRows(const Device& device, const EndRows<T>& rows);

template <class T>
Status ComputeStepGrads(const Device& device, const StepGrads<T>& grads);

// Whether no number is further from the expected one than a share of the
// largest expected one: of two ways to compute the same whether they do. Where
// an expected number is not finite, as gradients in half may be, any will do.
// Waits for the device.
template <class T>
Status Agree(const Device& device, const T* found, const T* expected,
             int64_t size, bool* agree);

// The sum of `rows` rows, `stride` apart.
template <class T>
Status Sum(const Device& device, const T* from, int64_t rows, int64_t columns,
           int64_t stride, T* to);
template <class T>
Status SumPartial(const Device& device, const ComputeType<T>* from,
                  int64_t rows, int64_t columns, int64_t stride, T* to);

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_FUSED_TENSORS_H_
