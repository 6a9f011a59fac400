// The functions of a session's layers, by their numbers in its file: those of
// Activation, and from 16 on those of this list. docs/reference/session_file.md
// defines them, a test compares the names with Python's.
#ifndef TF_LSTM_OPS_CORE_FUNCTIONS_H_
#define TF_LSTM_OPS_CORE_FUNCTIONS_H_

#include <cstdint>
#include <iterator>

#include "core/activation.h"

// F(name, text, how many `numbers` it has, whether it is one of rows, about the
// nanoseconds of an element) for each function. Append new ones.
#define TF_LSTM_OPS_FUNCTIONS(F)                     \
  F(kSoftmax, "softmax", 0, true, 1)                 \
  F(kReluWith, "relu_with", 3, false, 0.5)           \
  F(kEluWith, "elu_with", 1, false, 0.5)             \
  F(kCelu, "celu", 1, false, 0.5)                    \
  F(kSelu, "selu", 0, false, 0.5)                    \
  F(kSoftplus, "softplus", 0, false, 1)              \
  F(kSquareplus, "squareplus", 1, false, 0.5)        \
  F(kSoftShrink, "soft_shrink", 1, false, 0.5)       \
  F(kHardShrink, "hard_shrink", 1, false, 0.5)       \
  F(kTanhShrink, "tanh_shrink", 0, false, 0.5)       \
  F(kThreshold, "threshold", 2, false, 0.5)          \
  F(kSparsePlus, "sparse_plus", 0, false, 0.5)       \
  F(kSparseSigmoid, "sparse_sigmoid", 0, false, 0.5) \
  F(kExponential, "exponential", 0, false, 0.5)      \
  F(kHardSilu, "hard_silu", 0, false, 0.5)           \
  F(kMish, "mish", 0, false, 1)                      \
  F(kLogSigmoid, "log_sigmoid", 0, false, 1)         \
  F(kLogSoftmax, "log_softmax", 0, true, 1)          \
  F(kGeluTanh, "gelu_tanh", 0, false, 0.5)           \
  F(kPRelu, "prelu", 0, false, 0.5)

namespace tf_lstm_ops {

enum Function : uint32_t {
  kLastForActivation = 15,
#define TF_LSTM_OPS_FUNCTION(name, ...) name,
  TF_LSTM_OPS_FUNCTIONS(TF_LSTM_OPS_FUNCTION)
#undef TF_LSTM_OPS_FUNCTION
};
static_assert(static_cast<uint32_t>(Activation::kCount) <= kSoftmax,
              "no number of the file is left");

struct FunctionTraits {
  const char* name;
  int numbers;
  bool is_of_rows;
  double element_time;
};

// Null where no function has this number.
inline const FunctionTraits* FindFunction(uint32_t number) {
#define TF_LSTM_OPS_ROW(name, text) \
  {text, 0, false, Activation::name == Activation::kGelu ? 3 : 0.5},
  static constexpr FunctionTraits kOfActivation[] = {
      TF_LSTM_OPS_ACTIVATIONS(TF_LSTM_OPS_ROW)};
#undef TF_LSTM_OPS_ROW
#define TF_LSTM_OPS_ROW(name, ...) {__VA_ARGS__},
  static constexpr FunctionTraits kOthers[] = {
      TF_LSTM_OPS_FUNCTIONS(TF_LSTM_OPS_ROW)};
#undef TF_LSTM_OPS_ROW
  if (number < std::size(kOfActivation)) return &kOfActivation[number];
  // Below kSoftmax, the difference is large.
  const uint32_t k = number - kSoftmax;
  return k < std::size(kOthers) ? &kOthers[k] : nullptr;
}

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_FUNCTIONS_H_
