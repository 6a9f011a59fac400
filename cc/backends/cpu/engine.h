// Engine: the functions that are compiled once for each instruction set.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_

#include <cstdint>

#include "backends/cpu/packed_weights.h"
#include "core/float16.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops {

// A forward pass as the engine takes it. States are contiguous, [B, P] and [B,
// H]; multipliers are contiguous, [G, B, .]. The engine follows `packed` in
// place of `sequence`. It writes neither final_h nor masked steps.
template <class T>
struct EngineForward : LayerForward<T> {
  const PackedSequence* packed = nullptr;
};

// A backward pass as the engine takes it, with states and multipliers as above.
// In: h0_grad and c0_grad hold the gradients of the final states. Out: the
// gradients of the initial states; h0_grad is undefined unless wants_h0_grad.
// z_grad, if not null, is [V, 4, H] by packed row, in gate order ICFO.
template <class T>
struct EngineBackward : LayerBackward<T> {
  const PackedSequence* packed = nullptr;
  bool wants_h0_grad = true;
};

// Runs `count` layer directions side by side, one or kMaxTogether. With one
// layer direction the packed weights may be kept: `packed` then holds them, or
// receives them if it is not filled. Null keeps nothing.
template <class T>
using ForwardFunction = void (*)(const EngineForward<T>* layers, int count,
                                 int threads, cpu::PackedWeights* packed);
template <class T>
using BackwardFunction = void (*)(const EngineBackward<T>* layers, int count,
                                  int threads);

struct Engine {
  ForwardFunction<float> forward_float;
  ForwardFunction<double> forward_double;
  BackwardFunction<float> backward_float;
  BackwardFunction<double> backward_double;
  // y[k] = f(x[k]), n elements. Tests measure their errors.
  void (*sigmoid)(const float* x, float* y, int64_t n);
  void (*tanh)(const float* x, float* y, int64_t n);
  // y[k] = x[k], n elements.
  void (*widen_half)(const Half* x, float* y, int64_t n);
  void (*widen_bfloat16)(const BFloat16* x, float* y, int64_t n);
  void (*narrow_half)(const float* x, Half* y, int64_t n);
  void (*narrow_bfloat16)(const float* x, BFloat16* y, int64_t n);
  // For roofline.h. multiply_add runs multiply-adds between registers and sets
  // `flops` to their number of operations; sum adds n elements, limited by
  // memory bandwidth.
  float (*multiply_add)(int64_t rounds, int64_t* flops);
  float (*sum)(const float* x, int64_t n);
};

// The passes for RnnConfig::bfloat16.
struct BFloat16Engine {
  ForwardFunction<float> forward;
  BackwardFunction<float> backward;
};

struct InstructionSet {
  const char* name;  // as -march= has it, or "baseline"
  const Engine* engine;
  const BFloat16Engine* bfloat16;
};

// The instruction sets that this processor has, the best one last. Returns
// their number.
int AvailableInstructionSets(const InstructionSet** sets);

// The best instruction set, or the one that the environment variable
// TF_LSTM_OPS_SIMD names. The variable is read once. An unavailable name is
// ignored here; the Python package raises an error.
const InstructionSet& SelectedInstructionSet();

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
