// Engine: the functions that are compiled once for each instruction set, as far
// as inference of float layers needs them; training_engine.h has the others.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/call_memory.h"
#include "backends/cpu/kept_weights.h"
#include "backends/cpu/weights_hash.h"
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

// Runs `count` layer directions side by side; `count` is 1 or kMaxTogether.
// kept[k] may be set if packs_weights holds for layers[k]. If it is filled, the
// engine reads the packed weights from it. If not, the engine packs the weights
// into it, and the caller marks it as filled. A null `memory` means memory that
// the pass allocates.
template <class T>
using ForwardFunction = void (*)(const EngineForward<T>* layers, int count,
                                 int threads, cpu::PackedWeights* const* kept,
                                 cpu::CallMemory* memory);

// A layer direction for passes of one row. Arrays that have an element for each
// unit have H' elements, H rounded up to whole vectors, of which those behind
// the units are zero.
struct RowLayer {
  RnnConfig config;   // its cell_size is H'
  int64_t units = 0;  // H
  int vectors = 1;    // of units that a step computes together, at most
  RnnWeights<const float> weights;          // the peepholes only
  const float* packed_input = nullptr;      // see Forward::InputWeights
  const float* packed_recurrent = nullptr;  // see Forward::RecurrentWeights
  const float* bias = nullptr;  // sums of the biases, [pre-activations, H']
};

// Steps of one row, forwards in time.
struct RowSteps {
  int64_t steps;
  const float* x;  // [steps, I], x_stride apart
  int64_t x_stride;
  float* y;  // h of each step, [steps, H], y_stride apart
  int64_t y_stride;
  // The states [H'], which are updated; c is that of an LSTM. They and
  // `scratch` are aligned to 64 bytes.
  float* h = nullptr;
  float* c = nullptr;
  float* scratch = nullptr;
  // Whether the first step computes the last units first. Steps alternate: what
  // was used last is still in the cache.
  bool reverse = false;
};
using RowFunction = void (*)(const RowLayer& layer, const RowSteps& row);

// Weights [depth, columns] of a product, packed, and a bias, which may be null.
struct PackedProduct {
  const float* packed;
  const float* bias;
  int64_t depth, columns;
};

// The functions of one instruction set.
struct Engine {
  int float_lanes;  // floats in a vector
  ForwardFunction<float> forward;
  // Whether a forward pass packs its weights. Otherwise it reads them in place;
  // see single_step.h.
  bool (*packs_weights)(const EngineForward<float>& layer);
  // Null for a cell that has no passes of one row.
  RowFunction (*row_function)(CellKind cell);
  // Sets `row` to a layer whose weights are packed. `memory` is for the arrays
  // of `row`; with null memory none is written. Returns the number of floats of
  // these arrays, 0 where passes of one row do not serve the layer.
  int64_t (*make_row_layer)(const EngineForward<float>& layer,
                            cpu::PackedWeights* packed, float* memory,
                            RowLayer* row);
  // Floats of RowSteps::scratch.
  int64_t (*row_scratch)(const RowLayer& row);
  // Packs weights [depth, columns], unless `packed` is null. Returns the number
  // of packed floats.
  int64_t (*pack_product)(const float* weights, int64_t depth, int64_t columns,
                          float* packed);
  // y = x W + bias of `rows` rows.
  void (*run_product)(const PackedProduct& product, const float* x,
                      int64_t rows, float* y);
  // A hash of `size` bytes.
  cpu::WeightsHash (*hash)(const void* data, size_t size,
                           const cpu::HashKey& key);
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
};

struct InstructionSet {
  const char* name;  // of TF_LSTM_OPS_SIMD, such as "x86-64-v3"
  const Engine* engine;
};

// Sets `sets` to the instruction sets that this processor has, the best one
// last, and returns their number. The array lives as long as the process.
int AvailableInstructionSets(const InstructionSet** sets);

// Returns the best instruction set, or the one that the environment variable
// TF_LSTM_OPS_SIMD names. The variable is read once. This function ignores the
// name of an unavailable instruction set; the Python package raises an error
// for it.
const InstructionSet& SelectedInstructionSet();
// Its index in AvailableInstructionSets.
int SelectedInstructionSetIndex();

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
