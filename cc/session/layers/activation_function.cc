#include "session/layers/activation_function.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/engine.h"
#include "session/layers/elementwise.h"

namespace tf_lstm_ops::session {
namespace {

constexpr float kSeluScale = 1.05070098735548049F;
constexpr float kSeluAlpha = 1.67326324235437728F;

constexpr int64_t kBlock = 256;

// y = f(x) of n elements, for functions of the engine. y may be x.
struct Activate {
  Activation f;
  void operator()(const float* x, int64_t n, float* y) const {
    SelectedInstructionSet().engine->activate(f, x, y, n);
  }
};
struct Exp {
  void operator()(const float* x, int64_t n, float* y) const {
    SelectedInstructionSet().engine->exp(x, y, n);
  }
};
constexpr Activate kEluOfEngine = {Activation::kElu};

// y = result(z, f(z)) of n elements z of x.
template <class F, class Result>
void MapBoth(const F& f, const float* x, int64_t n, float* y,
             const Result& result) {
  float t[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const float* from = x + first;
    const int64_t count = std::min(n - first, kBlock);
    f(from, count, t);
    Map(from, count, y + first,
        [&](float z, int64_t k) { return result(z, t[k]); });
  }
}

// The function f(argument(z)).
template <class F, class Argument>
auto Of(const F& f, const Argument& argument) {
  return [=](const float* x, int64_t n, float* y) {
    Map(x, n, y, [&](float z, int64_t) { return argument(z); });
    f(y, n, y);
  };
}

// z above `least`, at most `most`; else slope * (z - least). The slope is not
// 0.
float Relu(float z, float slope, float most, float least) {
  const float below = slope * (std::min(z, least) - least);
  return std::min((z <= least ? 0 : z) + below, most);
}

// The same with slope 0: 0 times infinity is not 0.
float ClippedRelu(float z, float most, float least) {
  return std::min(z <= least ? 0 : z, most);
}

// log(1 + t) for 0 <= t <= 1, with s = t / (2 + t) = tanh of its half. The
// polynomial is (log(1 + t) / s - 2) / s^2 within 3e-7.
float LogOfOnePlus(float t) {
  const float s = t / (2 + t), w = s * s;
  const float p =
      0x1.55554cp-1F +
      w * (0x1.99ad6cp-2F + w * (0x1.21249ap-2F + w * 0x1.12f598p-2F));
  return t - s * (t - w * p);
}

// log(1 + e^z), where e is e^-|z|.
float Softplus(float z, float e) { return PositivePart(z) + LogOfOnePlus(e); }

// z tanh(log(1 + e^z)), where e is e^-|z|: with u = 1 + e^z, the hyperbolic
// tangent is (u^2 - 1) / (u^2 + 1). p and q are e^z and 1, over the larger one.
float Mish(float z, float e) {
  const float p = z > 0 ? 1 : e, q = z > 0 ? e : 1;
  const float n = p * (p + 2 * q);
  return z * (n / (n + 2 * q * q));
}

// y = positive * z if z > 0, else negative * (e^z - 1). One of the two terms is
// 0.
void MapElu(const float* x, int64_t n, float* y, float positive,
            float negative) {
  MapBoth(kEluOfEngine, x, n, y, [=](float, float t) {
    return positive * PositivePart(t) + negative * NegativePart(t);
  });
}

// y = z if z > 0, else a (e^(z/a) - 1).
void MapCelu(const float* x, int64_t n, float* y, float a) {
  const auto argument = [=](float z) { return NegativePart(z) / a; };
  if (a > 0) {
    return MapBoth(Of(kEluOfEngine, argument), x, n, y,
                   [=](float z, float t) { return PositivePart(z) + a * t; });
  }
  MapBoth(Of(Exp(), argument), x, n, y,
          [=](float z, float e) { return PositivePart(z) + a * (e - 1); });
}

// The order of the additions depends on n only.
float Sum(const float* x, int64_t n) {
  constexpr int64_t kLanes = 8;
  float lanes[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[k + lane];
  }
  const float rest = std::accumulate(x + k, x + n, 0.0F);
  return std::accumulate(lanes, lanes + kLanes, rest);
}

// y = x minus its largest element.
void SubtractLargest(const float* x, int64_t width, float* y) {
  const float most = *std::max_element(x, x + width);
  Map(x, width, y, [=](float z, int64_t) { return z - most; });
}

void Softmax(const float* x, int64_t width, float* y) {
  SubtractLargest(x, width, y);
  Exp()(y, width, y);
  const float sum = Sum(y, width);
  Map(y, width, y, [=](float e, int64_t) { return e / sum; });
}

void LogSoftmax(const float* x, int64_t width, float* y) {
  SubtractLargest(x, width, y);
  float sum = 0, e[kBlock];
  for (int64_t first = 0; first < width; first += kBlock) {
    const int64_t count = std::min(width - first, kBlock);
    Exp()(y + first, count, e);
    sum += Sum(e, count);
  }
  const float log_sum = std::log(sum);
  Map(y, width, y, [=](float z, int64_t) { return z - log_sum; });
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
      return map(
          [](float z) { return std::min(PositivePart((z + 1) / 2), 1.0F); });
    default:
      return false;
  }
}

// The functions that need one of the engine.
void ApplyByEngine(const ActivationFunction& f, const float* x, int64_t n,
                   float* y) {
  const auto map = [=](const auto& function, const auto& result) {
    MapBoth(function, x, n, y, result);
  };
  const auto of_minus_magnitude =
      Of(Exp(), [](float z) { return -std::fabs(z); });
  switch (f.number) {
    case kEluWith:
    case kCelu:
      if (f.a == 1) return kEluOfEngine(x, n, y);
      if (f.number == kCelu) return MapCelu(x, n, y, f.a);
      return MapElu(x, n, y, 1, f.a);
    case kSelu:
      return MapElu(x, n, y, kSeluScale, kSeluScale * kSeluAlpha);
    case kSoftplus:
      return map(of_minus_magnitude,
                 [](float z, float e) { return Softplus(z, e); });
    case kLogSigmoid:
      return map(of_minus_magnitude,
                 [](float z, float e) { return -Softplus(-z, e); });
    case kMish:
      return map(of_minus_magnitude,
                 [](float z, float e) { return Mish(z, e); });
    case kExponential:
      return Exp()(x, n, y);
    case kHardSilu:
      return map(Activate{Activation::kHardSigmoid},
                 [](float z, float t) { return z * t; });
    case kTanhShrink:
      return map(Activate{Activation::kTanh},
                 [](float z, float t) { return z - t; });
    default: {  // kGeluTanh
      constexpr float kRootOfTwoByPi = 0.797884560802865356F;
      const auto argument = [](float z) {
        return kRootOfTwoByPi * (z + 0.044715F * z * z * z);
      };
      return map(Of(Activate{Activation::kTanh}, argument),
                 [](float z, float t) { return z * (1 + t) / 2; });
    }
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
    Activate{static_cast<Activation>(number)}(x, count, y);
  } else if (!ApplyPlain(*this, x, count, y)) {
    ApplyByEngine(*this, x, count, y);
  }
}

ActivationFunction ReadFunction(NodeReader* reader, uint32_t last) {
  ActivationFunction function;
  function.number = reader->Activation(0, last);
  const FunctionTraits* traits = FindFunction(function.number);
  if (traits == nullptr) {
    constexpr auto kLastOfCore = static_cast<uint32_t>(Activation::kCount) - 1;
    reader->Fail("activation is %u, must be 0 to %u or %u to %u",
                 function.number, kLastOfCore, uint32_t{kSoftmax}, last);
    return {};
  }
  const struct {
    const char* name;
    float* to;
  } numbers[] = {{"numbers[0]", &function.a},
                 {"numbers[1]", &function.b},
                 {"numbers[2]", &function.c}};
  int k = 0;
  for (const auto& number : numbers) {
    if (k == traits->numbers) break;
    *number.to = static_cast<float>(reader->Number(k++, number.name));
  }
  return function;
}

}  // namespace tf_lstm_ops::session
