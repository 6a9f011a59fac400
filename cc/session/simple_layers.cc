#include "session/simple_layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/engine.h"
#include "core/activation.h"

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

void Softmax(const float* x, int64_t width, float* y) {
  const float most = *std::max_element(x, x + width);
  float sum = 0;
  for (int64_t k = 0; k < width; ++k) {
    y[k] = std::exp(x[k] - most);
    sum += y[k];
  }
  for (int64_t k = 0; k < width; ++k) y[k] /= sum;
}

}  // namespace

void Activate(uint32_t function, const float* x, int64_t rows, int64_t width,
              float* y) {
  const int64_t count = rows * width;
  const auto activation = static_cast<Activation>(function);
  if (function == kSoftmax) {
    for (int64_t r = 0; r < rows; ++r) {
      Softmax(x + r * width, width, y + r * width);
    }
  } else if (activation == Activation::kLinear) {
    if (x != y && count > 0) std::memcpy(y, x, count * sizeof(float));
  } else if (activation == Activation::kTanh) {
    SelectedInstructionSet().engine->tanh(x, y, count);
  } else if (activation == Activation::kSigmoid) {
    SelectedInstructionSet().engine->sigmoid(x, y, count);
  } else {
    for (int64_t k = 0; k < count; ++k) {
      y[k] = ActivationMath<PlainMath>::Activate(activation, x[k]);
    }
  }
}

void RunMasking(const Layer& layer, const float* x, int64_t rows, float* y,
                bool* valid) {
  const int64_t width = layer.input_size;
  const auto mask_value = static_cast<float>(layer.number);
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    valid[r] = std::any_of(x, x + width,
                           [=](float value) { return value != mask_value; });
    if (valid[r]) {
      std::copy_n(x, width, y);
    } else {
      std::fill_n(y, width, 0.0F);
    }
  }
}

void MergeDirections(const Layer& layer, const float* forwards,
                     const float* backwards, int64_t x_stride, int64_t rows,
                     float* y) {
  const int64_t width = layer.hidden_size;
  for (int64_t r = 0; r < rows; ++r, y += layer.output_size()) {
    const float* f = forwards + r * x_stride;
    const float* b = backwards + r * x_stride;
    switch (layer.merge) {
      case kSum:
        for (int64_t k = 0; k < width; ++k) y[k] = f[k] + b[k];
        break;
      case kProduct:
        for (int64_t k = 0; k < width; ++k) y[k] = f[k] * b[k];
        break;
      case kAverage:
        for (int64_t k = 0; k < width; ++k) y[k] = (f[k] + b[k]) / 2;
        break;
      default:  // kConcatenate
        std::copy_n(f, width, y);
        std::copy_n(b, width, y + width);
    }
  }
}

}  // namespace tf_lstm_ops::session
