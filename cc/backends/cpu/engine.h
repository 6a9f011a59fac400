// Engine: the functions that are compiled once for each instruction set.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kept_weights.h"
#include "core/float16.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops {

// The arguments of the engine for a forward pass. States are contiguous, [B, P]
// and [B, H]. Multipliers are contiguous, [G, B, .]. The engine reads `valid`
// instead of `sequence`. It writes neither final_h nor masked steps.
template <class T>
struct EngineForward : LayerForward<T> {
  const PackedSequence* valid = nullptr;
};

// The arguments of the engine for a backward pass, with states and multipliers
// as above. In: h0_grad and c0_grad hold the gradients with respect to the
// final states. Out: they hold the gradients with respect to the initial
// states; h0_grad is undefined unless wants_h0_grad is set. z_grad is null.
template <class T>
struct EngineBackward : LayerBackward<T> {
  const PackedSequence* valid = nullptr;
  bool wants_h0_grad = true;
};

// The largest number of layer directions that run side by side.
namespace cpu {
constexpr int kMaxTogether = 2;

// Whether two layer directions run side by side. A step then synchronises once
// for both. Threads alternate between two sets of recurrent weights, which is
// faster while both sets fit into half of their L2 caches.
bool RunsSideBySide(const RnnConfig& config, int64_t element_bytes,
                    int threads);

// Whether an instruction set without products of bfloat16 packs the weights of
// a forward pass as pairs, which halves the bytes that a step reads. A product
// of a few rows then widens each weight once, in the time in which it waits for
// memory. Otherwise the weights are widened when they are packed.
template <class T>
bool PacksPairs(const EngineForward<T>& layer);
}  // namespace cpu

// Adds a value to a hash, a bijection of each.
inline uint64_t MixHash(uint64_t hash, uint64_t value) {
  const uint64_t product = (hash ^ value) * 0x9E3779B97F4A7C15;  // golden ratio
  return product ^ product >> 32;  // a product keeps the highest bit's place
}

// Runs `count` layer directions side by side; `count` is 1 or kMaxTogether.
// kept[k] may be set if packs_weights holds for layers[k]. If it is filled, the
// engine reads the packed weights from it. If not, the engine packs the weights
// into it, and the caller marks it as filled.
template <class T>
using ForwardFunction = void (*)(const EngineForward<T>* layers, int count,
                                 int threads, cpu::PackedWeights* const* kept);
template <class T>
using BackwardFunction = void (*)(const EngineBackward<T>* layers, int count,
                                  int threads);

// The functions of one instruction set.
struct Engine {
  int float_lanes;  // floats in a vector
  ForwardFunction<float> forward_float;
  ForwardFunction<double> forward_double;
  BackwardFunction<float> backward_float;
  BackwardFunction<double> backward_double;
  // Whether a forward pass packs its weights. Otherwise it reads them in place;
  // see single_step.h.
  bool (*packs_weights_float)(const EngineForward<float>& layer);
  bool (*packs_weights_double)(const EngineForward<double>& layer);
  // A hash of `size` bytes; see hash.h.
  uint64_t (*hash)(const void* data, size_t size);
  // y[k] = f(x[k]) for n elements. Tests measure the errors.
  void (*sigmoid)(const float* x, float* y, int64_t n);
  void (*tanh)(const float* x, float* y, int64_t n);
  // Conversions, y[k] = x[k] for n elements.
  void (*widen_half)(const Half* x, float* y, int64_t n);
  void (*widen_bfloat16)(const BFloat16* x, float* y, int64_t n);
  void (*narrow_half)(const float* x, Half* y, int64_t n);
  void (*narrow_bfloat16)(const float* x, BFloat16* y, int64_t n);
  // For roofline.h. multiply_add runs `rounds` rounds of multiply-adds between
  // registers and sets `flops` to the number of floating-point operations. sum
  // adds n elements; memory bandwidth limits it. Both return their result so
  // that compilers keep the loops.
  float (*multiply_add)(int64_t rounds, int64_t* flops);
  float (*sum)(const float* x, int64_t n);
  // The backward pass of a step that cpu::IsStepGradient accepts.
  void (*step_gradient_float)(const LayerBackward<float>& layer, int threads);
  void (*step_gradient_double)(const LayerBackward<double>& layer, int threads);
};

// The passes of layers with RnnConfig::bfloat16.
struct BFloat16Engine {
  ForwardFunction<float> forward;
  BackwardFunction<float> backward;
};

struct InstructionSet {
  const char* name;  // of TF_LSTM_OPS_SIMD, such as "x86-64-v3"
  const Engine* engine;
  const BFloat16Engine* bfloat16;
};

// Sets `sets` to the instruction sets that this processor has, the best one
// last, and returns their number. The array lives as long as the process.
int AvailableInstructionSets(const InstructionSet** sets);

// Returns the best instruction set, or the one that the environment variable
// TF_LSTM_OPS_SIMD names. The variable is read once. This function ignores the
// name of an unavailable instruction set; the Python package raises an error
// for it.
const InstructionSet& SelectedInstructionSet();

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
