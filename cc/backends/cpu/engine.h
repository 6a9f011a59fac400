// Engine: the functions that are compiled once for each instruction set.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_

#include <cstdint>

#include "backends/cpu/packed_weights.h"
#include "core/float16.h"
#include "core/rnn.h"

namespace tf_lstm_ops {

// `count` layers side by side, one or kMaxTogether. Of one, the weights may be
// kept: `packed` is filled, or to be filled, or null.
template <class T>
using ForwardFunction = void (*)(const RnnForward<T>* layers, int count,
                                 int threads, cpu::PackedWeights* packed);
template <class T>
using BackwardFunction = void (*)(const RnnBackward<T>* layers, int count,
                                  int threads);

struct Engine {
  ForwardFunction<float> forward_float;
  ForwardFunction<double> forward_double;
  BackwardFunction<float> backward_float;
  BackwardFunction<double> backward_double;
  // y[k] = f(x[k]), n numbers: for tests of the errors.
  void (*sigmoid)(const float* x, float* y, int64_t n);
  void (*tanh)(const float* x, float* y, int64_t n);
  // y[k] = x[k], n numbers.
  void (*widen_half)(const Half* x, float* y, int64_t n);
  void (*widen_bfloat16)(const BFloat16* x, float* y, int64_t n);
  void (*narrow_half)(const float* x, Half* y, int64_t n);
  void (*narrow_bfloat16)(const float* x, BFloat16* y, int64_t n);
  // For ceilings.h: multiply-adds between registers, `flops` operations in all;
  // the sum of n numbers, read as fast as the memory gives them.
  float (*multiply_add)(int64_t rounds, int64_t* flops);
  float (*sum)(const float* x, int64_t n);
};

// What RnnConfig::bfloat16 asks for.
struct BFloat16Engine {
  ForwardFunction<float> forward;
  BackwardFunction<float> backward;
};

struct InstructionSet {
  const char* name;  // as -march= has it, or "baseline"
  const Engine* engine;
  const BFloat16Engine* bfloat16;
};

// Those that this processor has, the best one last.
int AvailableInstructionSets(const InstructionSet** sets);

// The best one, or the one that the environment variable TF_LSTM_OPS_SIMD names
// (read once; a name that is not available is ignored here, and the Python
// package refuses it).
const InstructionSet& SelectedInstructionSet();

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
