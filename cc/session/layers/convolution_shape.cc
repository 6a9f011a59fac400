#include "session/layers/convolution_shape.h"

#include <algorithm>

#include "session/layers/shapes.h"

namespace tf_lstm_ops::session {

int64_t Windows::Count(int64_t steps) const {
  if (is_same) return (steps + stride - 1) / stride;
  const int64_t last = steps + before + behind - reach() - 1;
  return last < 0 ? 0 : last / stride + 1;
}

int64_t Windows::Before(int64_t steps) const {
  if (!is_same) return before;
  const int64_t covered = (Count(steps) - 1) * stride + reach() + 1;
  return std::max<int64_t>(covered - steps, 0) / 2;
}

bool Windows::AreInside(int64_t steps) const {
  const int64_t last = (Count(steps) - 1) * stride - Before(steps);
  return Before(steps) == 0 && last + reach() < steps;
}

bool Windows::Infer(int64_t steps, int64_t* out, Error* error) const {
  *out = kUnknown;
  if (steps == kUnknown) return true;
  if (!RequireSummable(steps, error)) return false;
  *out = Count(steps);
  return *out > 0 || steps == 0 ||
         Fail(error, error->code,
              "its input has %lld steps, must have %lld or more",
              static_cast<long long>(steps),
              static_cast<long long>(reach() + 1 - before - behind));
}

Windows ReadConvolutionWindows(NodeReader* reader, bool has_groups,
                               int64_t* groups) {
  Windows windows;
  windows.size = reader->Int(0, "window", 1, kMaxSize);
  windows.stride = reader->Int(1, "stride", 1, kMaxSize);
  windows.dilation = reader->Int(2, "dilation", 1, kMaxSize);
  *groups = has_groups ? reader->Int(3, "groups", 1, kMaxSize) : 1;
  windows.is_same = reader->Int(4, "padding", 0, 1) == 1;
  const int64_t most = windows.is_same ? 0 : kMaxSize;
  windows.before = reader->Int(5, "zeros before", 0, most);
  windows.behind = reader->Int(6, "zeros behind", 0, most);
  if (windows.reach() > kMaxSize) {
    reader->Fail("a window reaches over %lld steps, at most %lld are possible",
                 static_cast<long long>(windows.reach()),
                 static_cast<long long>(kMaxSize));
  }
  return windows;
}

Windows ReadPoolingWindows(NodeReader* reader) {
  Windows windows;
  windows.size = reader->Int(0, "window", 1, kMaxSize);
  windows.stride = reader->Int(1, "stride", 1, kMaxSize);
  windows.is_same = reader->Int(2, "padding", 0, 1) == 1;
  return windows;
}

}  // namespace tf_lstm_ops::session
