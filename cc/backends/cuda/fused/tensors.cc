#include "backends/cuda/fused/tensors.h"

#include <algorithm>
#include <vector>

#include "backends/cuda/kernels/host_bytes.h"
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

constexpr int64_t kCompareThreads = 1 << 12;
// Two algorithms that round differently may differ by some hundredths after
// hundreds of steps of a 16-bit type; a wrong one differs by much more.
constexpr double kTolerance = 1.0 / 16;

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

Status CopyBytesFromHost(const Device& device, const void* from, int64_t bytes,
                         void* to) {
  if (bytes == 0) return Status();
  CUfunction function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindKernel(device, {"kernels/host_bytes.cu", {}},
                                         "put_bytes", &function));
  const auto* next = static_cast<const uint8_t*>(from);
  HostBytes a;
  a.to = static_cast<uint8_t*>(to);
  for (int64_t left = bytes; left > 0; left -= a.size) {
    a.size = std::min<int64_t>(left, HostBytes::kMaxSize);
    std::copy_n(next, a.size, a.bytes);
    TF_LSTM_OPS_RETURN_IF_ERROR(device.Launch(function, a.size, a));
    next += a.size;
    a.to += a.size;
  }
  return Status();
}

template <class T>
Status ComputeDropRows(const Device& device, const DropRows<T>& a) {
  return Run<T>(device, "drop_rows", a.sets * a.rows * a.width, a);
}

template <class T>
Status ComputeDropRowsGrad(const Device& device,
                           const DropRowsGrad<T, ComputeType<T>>& a) {
  return Run<T>(device, "drop_rows_grad", a.rows * a.width, a);
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
Status CopyFirstRows(const Device& device, const EndRows<T>& a) {
  return Run<T>(device, "first_rows", a.sequence.batch * a.width, a);
}

template <class T>
Status AddToLastRows(const Device& device, const EndRows<T>& a) {
  return Run<T>(device, "add_to_last_rows", a.sequence.batch * a.width, a);
}

template <class T>
Status CompareElements(const Device& device, const T* found, const T* expected,
                       int64_t size, bool* agree) {
  using C = ComputeType<T>;
  *agree = true;
  if (size == 0) return Status();
  MaxDifference<T, C> a;
  a.size = size;
  a.chunk = (size + kCompareThreads - 1) / kCompareThreads;
  a.found = found;
  a.expected = expected;
  const int64_t threads = (size + a.chunk - 1) / a.chunk;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(2 * threads, &a.to));
  TF_LSTM_OPS_RETURN_IF_ERROR(Run<T>(device, "max_difference", threads, a));
  std::vector<C> pairs(2 * threads);  // difference, expected value
  TF_LSTM_OPS_RETURN_IF_ERROR(
      device.CopyToHost(a.to, 2 * threads, pairs.data()));
  double largest = 0;
  for (size_t n = 1; n < pairs.size(); n += 2) {
    largest = std::max<double>(largest, pairs[n]);
  }
  for (size_t n = 0; n < pairs.size(); n += 2) {
    if (!(pairs[n] <= kTolerance * largest)) *agree = false;  // or NaN
  }
  return Status();
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
#define TF_LSTM_OPS_INSTANTIATE(T)                                             \
  template Status Copy(const Device&, const CopyRows<T, T>&);                  \
  template Status ComputeDropRows(const Device&, const DropRows<T>&);          \
  template Status ComputeDropRowsGrad(const Device&,                           \
                                      const DropRowsGrad<T, ComputeType<T>>&); \
  template Status ComputeAddedInputGrad(const Device&,                         \
                                        const AddedInputGrad<T>&);             \
  template Status ComputeStepGrads(const Device&, const StepGrads<T>&);        \
  template Status CopyFirstRows(const Device&, const EndRows<T>&);             \
  template Status AddToLastRows(const Device&, const EndRows<T>&);             \
  template Status CompareElements(const Device&, const T*, const T*, int64_t,  \
                                  bool*);                                      \
  template Status Sum(const Device&, const T*, const SumShape&, T*);           \
  template Status SumPartial(const Device&, const ComputeType<T>*,             \
                             const SumShape&, T*);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE
// NOLINTEND(bugprone-macro-parentheses)

template Status Copy(const Device&, const CopyRows<Half, float>&);
template Status Copy(const Device&, const CopyRows<float, Half>&);
template Status Copy(const Device&, const CopyRows<BFloat16, float>&);
template Status Copy(const Device&, const CopyRows<float, BFloat16>&);

}  // namespace tf_lstm_ops::cuda
