#include "backends/cuda/layer/tensors.h"

#include <algorithm>

#include "backends/cuda/runtime/programs.h"

namespace tf_lstm_ops::cuda {
namespace {

// Launches a kernel of tensors.cu for type T with one thread for each of
// `elements`.
template <class T, class Arguments>
Status Run(const Device& device, const char* kernel, int64_t elements,
           const Arguments& arguments) {
  if (elements == 0) return Status();
  CUfunction function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindKernel(
      device, {"kernels/tensors.cu", {TypeMacro<T>()}}, kernel, &function));
  return device.Launch(function, elements, arguments);
}

// Enough threads for any GPU. The number is the same for all GPUs, so all add
// in the same order.
constexpr int64_t kSumThreads = 1 << 16;

}  // namespace

template <class From, class To>
Status Copy(const Device& device, const CopyRows<From, To>& copy) {
  const int64_t elements = copy.rows * copy.width;
  if constexpr (std::is_same_v<From, To>) {
    return Run<From>(device, "copy_rows", elements, copy);
  } else if constexpr (sizeof(From) < sizeof(To)) {
    return Run<From>(device, "widen_rows", elements, copy);
  } else {
    return Run<To>(device, "narrow_rows", elements, copy);
  }
}

template <class E, class T>
Status ComputeDropRows(const Device& device, const DropRows<E, E, T>& a) {
  return Run<T>(device, std::is_same_v<E, T> ? "drop_rows" : "drop_wide_rows",
                a.rows * a.width, a);
}

template <class T>
Status ComputeAddedInputGrad(const Device& device, const AddedInputGrad<T>& a) {
  const int64_t blocks = a.gate_stride > 0 ? a.gates : 1;
  return Run<T>(device, "added_input_grad", a.rows * blocks * a.cell_size, a);
}

template <class T>
Status ComputeStepGrads(const Device& device, const StepGrads<T>& a) {
  return Run<T>(device, "step_grads", a.sequence.batch * a.cell_size, a);
}

template <class T>
Status Sum(const Device& device, const T* from, const SumShape& shape, T* to) {
  if (shape.columns == 0) return Status();
  using C = ComputeType<T>;
  SumRows<T, C> a;
  a.rows = shape.rows;
  a.columns = shape.columns;
  a.stride = shape.stride;
  const int64_t max_chunks = std::max<int64_t>(kSumThreads / a.columns, 1);
  a.chunk = std::max<int64_t>((a.rows + max_chunks - 1) / max_chunks, 1);
  const int64_t chunks = std::max<int64_t>((a.rows + a.chunk - 1) / a.chunk, 1);
  a.from = from;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(chunks * a.columns, &a.to));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Run<T>(device, "sum_rows", chunks * a.columns, a));
  return SumPartial(device, a.to, {chunks, a.columns, a.columns}, to);
}

template <class T>
Status SumPartial(const Device& device, const ComputeType<T>* from,
                  const SumShape& shape, T* to) {
  SumRows<ComputeType<T>, T> a;
  a.rows = shape.rows;
  a.columns = shape.columns;
  a.stride = shape.stride;
  a.chunk = std::max<int64_t>(shape.rows, 1);
  a.from = from;
  a.to = to;
  return Run<T>(device, "sum_partial", shape.columns, a);
}

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define TF_LSTM_OPS_INSTANTIATE(T)                                      \
  template Status Copy(const Device&, const CopyRows<T, T>&);           \
  template Status ComputeDropRows(const Device&, const DropNarrow<T>&); \
  template Status ComputeAddedInputGrad(const Device&,                  \
                                        const AddedInputGrad<T>&);      \
  template Status ComputeStepGrads(const Device&, const StepGrads<T>&); \
  template Status Sum(const Device&, const T*, const SumShape&, T*);    \
  template Status SumPartial(const Device&, const ComputeType<T>*,      \
                             const SumShape&, T*);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE
// NOLINTEND(bugprone-macro-parentheses)

template Status ComputeDropRows(const Device&, const DropWide<Half>&);
template Status ComputeDropRows(const Device&, const DropWide<BFloat16>&);
template Status Copy(const Device&, const CopyRows<Half, float>&);
template Status Copy(const Device&, const CopyRows<float, Half>&);
template Status Copy(const Device&, const CopyRows<BFloat16, float>&);
template Status Copy(const Device&, const CopyRows<float, BFloat16>&);

}  // namespace tf_lstm_ops::cuda
