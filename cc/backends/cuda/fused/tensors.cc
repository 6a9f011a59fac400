#include "backends/cuda/fused/tensors.h"

#include <algorithm>
#include <vector>

#include "backends/cuda/kernels/host_bytes.h"
#include "backends/cuda/runtime/programs.h"

namespace tf_lstm_ops::cuda {
namespace {

// Runs a kernel of the program for type T, a thread for each of `numbers`.
template <class T, class Arguments>
Status Run(const Device& device, const char* kernel, int64_t numbers,
           const Arguments& arguments) {
  if (numbers == 0) return Status();
  CUfunction function = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(FindKernel(
      device, {"kernels/tensors.cu", {TypeMacro<T>()}}, kernel, &function));
  return device.Launch(function, numbers, arguments);
}

// Enough threads for any card, the same on all, so that sums are the same too.
constexpr int64_t kSumThreads = 1 << 16;

constexpr int64_t kDifferenceThreads = 1 << 12;
// Of the largest number. Two ways of rounding may come to differ by some
// hundredths in hundreds of steps of 16 bits; a wrong one is all wrong.
constexpr double kAgrees = 1.0 / 16;

}  // namespace

template <class From, class To>
Status Copy(const Device& device, const CopyRows<From, To>& copy) {
  const int64_t numbers = copy.rows * copy.width;
  if constexpr (std::is_same_v<From, To>) {
    return Run<From>(device, "copy_rows", numbers, copy);
  } else if constexpr (sizeof(From) < sizeof(To)) {
    return Run<From>(device, "widen_rows", numbers, copy);
  } else {
    return Run<To>(device, "narrow_rows", numbers, copy);
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
    a.size = std::min<int64_t>(left, HostBytes::kMost);
    std::copy_n(next, a.size, a.bytes);
    TF_LSTM_OPS_RETURN_IF_ERROR(device.Launch(function, a.size, a));
    next += a.size;
    a.to += a.size;
  }
  return Status();
}

template <class T>
Status See(const Device& device, const SeenRows<T>& seen) {
  return Run<T>(device, "seen_rows", seen.sets * seen.rows * seen.width, seen);
}

template <class T>
Status AddGradient(const Device& device,
                   const AddSeen<T, ComputeType<T>>& add) {
  return Run<T>(device, "add_seen", add.rows * add.width, add);
}

template <class T>
Status PassGradient(const Device& device,
                    const PassToInput<T, ComputeType<T>>& pass) {
  const int64_t blocks = pass.gate_stride > 0 ? pass.gates : 1;
  return Run<T>(device, "pass_to_input", pass.rows * blocks * pass.cell, pass);
}

template <class T>
Status FirstRows(const Device& device, const EndRows<T>& rows) {
  return Run<T>(device, "first_rows", rows.sequence.batch * rows.width, rows);
}

template <class T>
Status AddToLastRows(const Device& device, const EndRows<T>& rows) {
  return Run<T>(device, "add_to_last_rows", rows.sequence.batch * rows.width,
                rows);
}

template <class T>
Status ComputeStepGrads(const Device& device, const StepGrads<T>& grads) {
  return Run<T>(device, "step_grads", grads.sequence.batch * grads.cell, grads);
}

template <class T>
Status Agree(const Device& device, const T* found, const T* expected,
             int64_t size, bool* agree) {
  using C = ComputeType<T>;
  *agree = true;
  if (size == 0) return Status();
  LargestDifference<T, C> a;
  a.size = size;
  a.chunk = (size + kDifferenceThreads - 1) / kDifferenceThreads;
  a.found = found;
  a.expected = expected;
  const int64_t threads = (size + a.chunk - 1) / a.chunk;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(2 * threads, &a.to));
  TF_LSTM_OPS_RETURN_IF_ERROR(Run<T>(device, "largest_difference", threads, a));
  std::vector<C> all(2 * threads);
  TF_LSTM_OPS_RETURN_IF_ERROR(device.CopyToHost(a.to, 2 * threads, all.data()));
  double largest = 0;
  for (size_t n = 1; n < all.size(); n += 2) {
    largest = std::max<double>(largest, all[n]);
  }
  for (size_t n = 0; n < all.size(); n += 2) {
    if (!(all[n] <= kAgrees * largest)) *agree = false;  // NaN is not
  }
  return Status();
}

template <class T>
Status Sum(const Device& device, const T* from, int64_t rows, int64_t columns,
           int64_t stride, T* to) {
  if (columns == 0) return Status();
  using C = ComputeType<T>;
  SumRows<T, C> some;
  some.rows = rows;
  some.columns = columns;
  some.stride = stride;
  const int64_t most = std::max<int64_t>(kSumThreads / columns, 1);
  some.chunk = std::max<int64_t>((rows + most - 1) / most, 1);
  const int64_t chunks =
      std::max<int64_t>((rows + some.chunk - 1) / some.chunk, 1);
  some.from = from;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(chunks * columns, &some.to));
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Run<T>(device, "sum_rows", chunks * columns, some));
  return SumPartial(device, some.to, chunks, columns, columns, to);
}

template <class T>
Status SumPartial(const Device& device, const ComputeType<T>* from,
                  int64_t rows, int64_t columns, int64_t stride, T* to) {
  SumRows<ComputeType<T>, T> all;
  all.rows = rows;
  all.columns = columns;
  all.stride = stride;
  all.chunk = std::max<int64_t>(rows, 1);
  all.from = from;
  all.to = to;
  return Run<T>(device, "sum_sums", columns, all);
}

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define TF_LSTM_OPS_INSTANTIATE(T)                                             \
  template Status Copy(const Device&, const CopyRows<T, T>&);                  \
  template Status See(const Device&, const SeenRows<T>&);                      \
  template Status AddGradient(const Device&,                                   \
                              const AddSeen<T, ComputeType<T>>&);              \
  template Status PassGradient(const Device&,                                  \
                               const PassToInput<T, ComputeType<T>>&);         \
  template Status FirstRows(const Device&, const EndRows<T>&);                 \
  template Status AddToLastRows(const Device&, const EndRows<T>&);             \
  template Status ComputeStepGrads(const Device&, const StepGrads<T>&);        \
  template Status Agree(const Device&, const T*, const T*, int64_t, bool*);    \
  template Status Sum(const Device&, const T*, int64_t, int64_t, int64_t, T*); \
  template Status SumPartial(const Device&, const ComputeType<T>*, int64_t,    \
                             int64_t, int64_t, T*);
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
