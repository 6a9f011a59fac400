// Engine: the functions that are compiled once for each instruction set, as far
// as inference of float layers needs them; training_engine.h has the others.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/forward_engine.h"
#include "backends/cpu/row_layer.h"
#include "backends/cpu/weights/weights_hash.h"
#include "core/activation.h"
#include "core/float16.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops {

// Weights [depth, columns] of a product, packed, and a bias, which may be null.
struct PackedProduct {
  const float* packed;
  const float* bias;
  int64_t depth, columns;
  cpu::WeightFormat format;
};

// The functions of one instruction set.
struct Engine {
  ForwardEngine<float> forward;
  // Sets `row` to a layer that OneRow serves, whose weights are packed.
  // `memory` is for the arrays of `row`; with null memory none is written.
  // Returns the number of floats of these arrays.
  int64_t (*set_row_layer)(const LayerDirection<float>& layer,
                           cpu::WeightFormat format, float* packed,
                           float* memory, RowLayer* row);
  // Packs weights [depth, columns], the only gate of `weights`, unless `packed`
  // is null. Returns the number of packed floats.
  int64_t (*pack_product)(const GateMatrices<const float>& weights,
                          cpu::WeightFormat format, int64_t depth,
                          int64_t columns, float* packed);
  // y = x W + bias of `rows` rows: x[r] is a row of x, which may overlap
  // others. Rows of y are y_stride apart. The bits of a row do not depend on
  // the others. `rounded` is scratch memory of MostFactorFloats() elements for
  // each row, which is used for int8 only.
  void (*run_product)(const PackedProduct& product, const float* const* x,
                      int64_t rows, float* y, int64_t y_stride, float* rounded);
  // A hash of `size` bytes.
  cpu::WeightsHash (*hash)(const void* data, size_t size,
                           const cpu::HashKey& key);
  // y[k] = f(x[k]) for n elements, and e^x[k]. y may be x. Tests measure the
  // errors.
  void (*activate)(Activation f, const float* x, float* y, int64_t n);
  void (*exp)(const float* x, float* y, int64_t n);
  // Conversions, y[k] = x[k] for n elements.
  void (*widen_half)(const Half* x, float* y, int64_t n);
  void (*widen_bfloat16)(const BFloat16* x, float* y, int64_t n);
  void (*narrow_half)(const float* x, Half* y, int64_t n);
  void (*narrow_bfloat16)(const float* x, BFloat16* y, int64_t n);
  // For measured_rates.h. multiply_add runs `rounds` rounds of multiply-adds
  // between registers and sets `flops` to the number of floating-point
  // operations. sum adds n elements; memory bandwidth limits it. Both return
  // their result so that compilers keep the loops.
  float (*multiply_add)(int64_t rounds, int64_t* flops);
  float (*sum)(const float* x, int64_t n);
};

struct InstructionSet {
  const char* name;  // of TF_LSTM_OPS_SIMD, such as "x86-64-v3"
  const Engine* engine;
  // Those with products of bfloat16: the members from `forward` to
  // `run_product`. `engine` where there are no instructions for them.
  const Engine* bfloat16;
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

// Whether this process may use tiles of AMX, which Linux gives to processes
// that ask. The first call asks. With tiles, Linux saves 8 KiB more of a thread
// on signals, so the process can set no small alternate stack for them.
bool MayUseTiles();

// The functions for layers whose products are of bfloat16: of the selected
// instruction set, or of x86-64-v4 where Linux refuses tiles.
const Engine& BFloat16ProductsEngine();

// The functions for frozen weights, `elements` in all: those for products of
// bfloat16 where the weights allow them and the processor multiplies bfloat16,
// else `*otherwise`.
const Engine& FrozenEngine(const GateMatrices<const float>& weights,
                           int64_t elements, const Engine* otherwise);

// The functions for passes of a float layer: those of the selected instruction
// set, or of x86-64-v3 where at least half of each vector of AVX-512 would be
// empty. Both have the same bits.
const Engine& EngineFor(const RnnConfig& config);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_ENGINE_H_
