#include "session/layers/activation_function.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/engine.h"
#include "core/activation.h"
#include "session/layers/elementwise.h"

namespace tf_lstm_ops::session {
namespace {

// The functions of one number, for ActivationMath. A NaN stays a NaN.
struct PlainMath {
  using Value = float;
  static float Max(float a, float b) { return a < b ? b : a; }
  static float Min(float a, float b) { return b < a ? b : a; }
  static float IfPositive(float z, float yes, float no) {
    return z > 0 ? yes : no;
  }
  static float Tanh(float z) { return std::tanh(z); }
  static float Sigmoid(float z) { return 1 / (1 + std::exp(-z)); }
};

// Four numbers at a time, with the bits of PlainMath.
struct LanesMath {
  static constexpr int kLanes = 4;
  typedef float Value __attribute__((vector_size(kLanes * sizeof(float))));
  static Value Max(Value a, Value b) { return a < b ? b : a; }
  static Value Min(Value a, Value b) { return b < a ? b : a; }
  static Value IfPositive(Value z, Value yes, Value no) {
    return z > 0 ? yes : no;
  }
  static Value Tanh(Value z) {
    for (int k = 0; k < kLanes; ++k) z[k] = PlainMath::Tanh(z[k]);
    return z;
  }
  static Value Sigmoid(Value z) {
    for (int k = 0; k < kLanes; ++k) z[k] = PlainMath::Sigmoid(z[k]);
    return z;
  }
};

// y = f(x) of n elements, by a function of core.
void MapLanes(Activation f, const float* x, int64_t n, float* y) {
  constexpr int64_t kLanes = LanesMath::kLanes;
  LanesMath::Value z = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    std::memcpy(&z, x + k, sizeof(z));
    z = ActivationMath<LanesMath>::Activate(f, z);
    std::memcpy(y + k, &z, sizeof(z));
  }
  std::memcpy(&z, x + k, (n - k) * sizeof(float));
  z = ActivationMath<LanesMath>::Activate(f, z);
  std::memcpy(y + k, &z, (n - k) * sizeof(float));
}

constexpr float kSeluScale = 1.05070098735548049F;
constexpr float kSeluAlpha = 1.67326324235437728F;

float HardSigmoid(float z) {
  return PlainMath::Min(PlainMath::Max((z + 3) / 6, 0), 1);
}

float Softplus(float z) {
  return PlainMath::Max(z, 0) + std::log1p(std::exp(-std::fabs(z)));
}

// tanh(log(1 + e^z)) = (u^2 - 1) / (u^2 + 1) with u = 1 + e^z. The exponential
// is at most 1.
float Mish(float z) {
  const float e = std::exp(-std::fabs(z));
  const float n = z > 0 ? 1 + 2 * e : e * (e + 2);
  const float d = z > 0 ? n + 2 * e * e : n + 2;
  return z * (n / d);
}

// z above `least`, at most `most`; else slope * (z - least). The slope is not
// 0.
float Relu(float z, float slope, float most, float least) {
  const float below = slope * (PlainMath::Min(z, least) - least);
  return PlainMath::Min((z <= least ? 0 : z) + below, most);
}

// The same with slope 0: 0 times infinity is not 0.
float ClippedRelu(float z, float most, float least) {
  return PlainMath::Min(z <= least ? 0 : z, most);
}

void Softmax(const float* x, int64_t width, float* y) {
  const float most = *std::max_element(x, x + width);
  float sum = 0;
  for (int64_t k = 0; k < width; ++k) {
    y[k] = std::exp(x[k] - most);
    sum += y[k];
  }
  for (int64_t k = 0; k < width; ++k) y[k] /= sum;
}

void LogSoftmax(const float* x, int64_t width, float* y) {
  const float most = *std::max_element(x, x + width);
  float sum = 0;
  for (int64_t k = 0; k < width; ++k) sum += std::exp(x[k] - most);
  const float log_sum = std::log(sum);
  for (int64_t k = 0; k < width; ++k) y[k] = (x[k] - most) - log_sum;
}

// y = result(z, tanh(argument(z))), by the engine's tanh.
template <class Argument, class Result>
void MapTanh(const float* x, int64_t n, float* y, const Argument& argument,
             const Result& result) {
  constexpr int64_t kBlock = 256;
  float t[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const float* from = x + first;
    const int64_t count = std::min(n - first, kBlock);
    for (int64_t k = 0; k < count; ++k) t[k] = argument(from[k]);
    SelectedInstructionSet().engine->tanh(t, t, count);
    Map(from, count, y + first,
        [&](float z, int64_t k) { return result(z, t[k]); });
  }
}

// y = positive * z if z > 0, else negative * (e^(z / a) - 1), where e^2v - 1 is
// 2 t / (1 - t) with t = tanh(v). One of the two terms is 0.
void MapElu(const float* x, int64_t n, float* y, float positive, float negative,
            float a = 1) {
  MapTanh(
      x, n, y, [=](float z) { return PlainMath::Min(z, 0) / a / 2; },
      [=](float z, float t) {
        return positive * PlainMath::Max(z, 0) + negative * (2 * t / (1 - t));
      });
}

// The functions of core's list.
void ApplyOfCore(uint32_t number, const float* x, int64_t n, float* y) {
  const auto activation = static_cast<Activation>(number);
  switch (activation) {
    case Activation::kLinear:
      if (x != y) std::copy_n(x, n, y);
      return;
    case Activation::kTanh:
      return SelectedInstructionSet().engine->tanh(x, y, n);
    case Activation::kSigmoid:
      return SelectedInstructionSet().engine->sigmoid(x, y, n);
    case Activation::kRelu:
      return Map(x, n, y, [](float z, int64_t) { return z < 0 ? 0 : z; });
    case Activation::kHardSigmoid:
      return Map(x, n, y, [](float z, int64_t) { return HardSigmoid(z); });
    case Activation::kHardTanh:
      return Map(x, n, y, [](float z, int64_t) {
        return PlainMath::Min(PlainMath::Max(z, -1), 1);
      });
    case Activation::kSoftsign:
      return Map(x, n, y,
                 [](float z, int64_t) { return z / (1 + std::fabs(z)); });
    case Activation::kLeakyRelu:
    case Activation::kGelu:
      return MapLanes(activation, x, n, y);
    default:
      return Map(x, n, y, [=](float z, int64_t) {
        return ActivationMath<PlainMath>::Activate(activation, z);
      });
  }
}

// The functions that are loops of the compiler. False for others.
bool ApplyPlain(const ActivationFunction& f, const float* x, int64_t n,
                float* y) {
  const float a = f.a, b = f.b, c = f.c;
  // Calls of `function` are inlined.
  const auto map = [=](auto function) {
    Map(x, n, y, [=](float z, int64_t) { return function(z); });
    return true;
  };
  switch (f.number) {
    case kReluWith: {
      const float most = b > 0 ? b : INFINITY;
      if (a == 0) return map([=](float z) { return ClippedRelu(z, most, c); });
      return map([=](float z) { return Relu(z, a, most, c); });
    }
    case kSquareplus:
      return map([=](float z) { return (z + std::sqrt(z * z + a)) / 2; });
    case kSoftShrink:  // z - z is 0, or NaN
      return map([=](float z) {
        return z > a ? z - a : z < -a ? z + a : z - z;
      });
    case kHardShrink:
      return map([=](float z) { return std::fabs(z) > a ? z : z - z; });
    case kThreshold:
      return map([=](float z) { return z <= a ? b : z; });
    case kSparsePlus:
      return map([](float z) {
        return z <= -1 ? 0 : z < 1 ? (z + 1) * (z + 1) / 4 : z;
      });
    case kSparseSigmoid:
      return map([](float z) {
        return PlainMath::Min(PlainMath::Max((z + 1) / 2, 0), 1);
      });
    case kHardSilu:
      return map([](float z) { return z * HardSigmoid(z); });
    case kSoftplus:
      return map(Softplus);
    case kLogSigmoid:
      return map([](float z) { return -Softplus(-z); });
    case kMish:
      return map(Mish);
    case kExponential:
      return map([](float z) { return std::exp(z); });
    default:
      return false;
  }
}

// The functions that the engine's tanh computes.
void ApplyTanh(const ActivationFunction& f, const float* x, int64_t n,
               float* y) {
  switch (f.number) {
    case kEluWith:
      return MapElu(x, n, y, 1, f.a);
    case kCelu:
      return MapElu(x, n, y, 1, f.a, f.a);
    case kSelu:
      return MapElu(x, n, y, kSeluScale, kSeluScale * kSeluAlpha);
    case kTanhShrink:
      return MapTanh(
          x, n, y, [](float z) { return z; },
          [](float z, float t) { return z - t; });
    default:  // kGeluTanh
      return MapTanh(
          x, n, y,
          [](float z) {
            return 0.797884560802865356F * (z + 0.044715F * z * z * z);
          },
          [](float z, float t) { return z * (1 + t) / 2; });
  }
}

// How many of `numbers` a function has.
int NumberCount(uint32_t function) {
  switch (function) {
    case kReluWith:
      return 3;
    case kThreshold:
      return 2;
    case kEluWith:
    case kCelu:
    case kSquareplus:
    case kSoftShrink:
    case kHardShrink:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

void ActivationFunction::Apply(const float* x, int64_t rows, int64_t width,
                               float* y) const {
  const int64_t count = rows * width;
  if (count == 0) return;
  if (is_of_rows()) {
    const auto of_row = number == kSoftmax ? Softmax : LogSoftmax;
    for (int64_t r = 0; r < rows; ++r) {
      of_row(x + r * width, width, y + r * width);
    }
  } else if (number < kSoftmax) {
    ApplyOfCore(number, x, count, y);
  } else if (!ApplyPlain(*this, x, count, y)) {
    ApplyTanh(*this, x, count, y);
  }
}

double ActivationFunction::element_time() const {
  switch (number) {
    case static_cast<uint32_t>(Activation::kElu):
    case static_cast<uint32_t>(Activation::kSilu):
    case static_cast<uint32_t>(Activation::kGelu):
    case kSoftmax:
    case kLogSoftmax:
    case kSoftplus:
    case kLogSigmoid:
    case kMish:
    case kExponential:
      return 8;  // a call of the C library
    default:
      return is_linear() ? 0 : 0.5;
  }
}

ActivationFunction ReadFunction(NodeReader* reader, uint32_t last) {
  constexpr auto kLastOfCore = static_cast<uint32_t>(Activation::kCount) - 1;
  static_assert(kLastOfCore < kSoftmax, "no number of the file is left");
  ActivationFunction function;
  function.number = reader->Activation(0, last);
  if (function.number > kLastOfCore && function.number < kSoftmax) {
    reader->Fail("activation is %u, must be 0 to %u or %u to %u",
                 function.number, kLastOfCore, uint32_t{kSoftmax}, last);
    function.number = 0;
  }
  const int count = NumberCount(function.number);
  const char* const names[] = {"numbers[0]", "numbers[1]", "numbers[2]"};
  float* const to[] = {&function.a, &function.b, &function.c};
  for (int k = 0; k < count; ++k) {
    *to[k] = static_cast<float>(reader->Number(k, names[k]));
  }
  return function;
}

}  // namespace tf_lstm_ops::session
