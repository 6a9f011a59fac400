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

// The sums of kChain consecutive products are added up apart, so that rounding
// errors grow with kChain and not with the number of inputs.
constexpr int64_t kChain = 128;
// The sums of so many columns and rows stay in the L1 cache.
constexpr int64_t kColumns = 128;
constexpr int kRows = 4;

// Adds x W of `inputs` inputs to sums [rows, kColumns]. `columns` is at most
// kColumns.
template <int rows>
void AddProducts(const float* x, int64_t x_stride, int64_t inputs,
                 const float* weights, int64_t weight_stride, int64_t columns,
                 float (*sums)[kColumns]) {
  float chain[rows][kColumns] = {};
  for (int64_t k = 0; k < inputs; ++k) {
    const float* w = weights + k * weight_stride;
    for (int r = 0; r < rows; ++r) {
      const float factor = x[r * x_stride + k];
      for (int64_t n = 0; n < columns; ++n) chain[r][n] += factor * w[n];
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < columns; ++n) sums[r][n] += chain[r][n];
  }
}

template <int rows>
void DenseRows(const Layer& layer, const float* x, float* y) {
  const int64_t inputs = layer.input_size, units = layer.units;
  const float* kernel = layer.arrays[0][kKernel];
  const float* bias = layer.arrays[0][kBias];
  for (int64_t first = 0; first < units; first += kColumns) {
    const int64_t columns = std::min(kColumns, units - first);
    float sums[rows][kColumns] = {};
    for (int64_t k = 0; k < inputs; k += kChain) {
      AddProducts<rows>(x + k, inputs, std::min(kChain, inputs - k),
                        kernel + k * units + first, units, columns, sums);
    }
    for (int r = 0; r < rows; ++r) {
      float* to = y + r * units + first;
      for (int64_t n = 0; n < columns; ++n) {
        to[n] = sums[r][n] + (bias ? bias[first + n] : 0);
      }
    }
  }
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

void RunDense(const Layer& layer, const float* x, int64_t rows, float* y) {
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) {
    DenseRows<kRows>(layer, x + r * layer.input_size, y + r * layer.units);
  }
  for (; r < rows; ++r) {
    DenseRows<1>(layer, x + r * layer.input_size, y + r * layer.units);
  }
  Activate(layer.activation, y, rows, layer.units, y);
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
