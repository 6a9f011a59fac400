// Backward<T>: the state of the backward pass of one layer direction:
// arguments, sizes, order of the work, memory, and where the values of a row
// are. Notation and sizes are those of step.h and forward/step.h. V packed
// rows; P' is P rounded up to whole vectors.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STATE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STATE_H_

#include <algorithm>
#include <vector>

#include "backends/cpu/backward_engine.h"
#include "backends/cpu/memory/scratch.h"
#include "backends/cpu/simd/backward/transposed_product.h"
#include "backends/cpu/simd/backward/weight_grad.h"
#include "backends/cpu/simd/vector/cell.h"
#include "backends/cpu/simd/vector/gemm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

using cpu::BackwardSchedule, cpu::Scratch;

// The weight matrices W, R and that of the second product: Wp, or R of the
// candidate.
enum WeightMatrix { kInputWeights, kRecurrentWeights, kSecond, kMatrices };

// What is kept of the packed rows of a chunk, by the row's number in it.
template <class T>
struct BackwardChunk {
  T* z_grad;             // dz [., parts, H], rows z_stride apart
  T* rounded_z_grad;     // [., parts, H / 2], of pairs
  T* h_grad;             // dh [., P'], with a projection
  T* m;                  // [., H], with a second product
  T* m_grad;             // dm [., H] of one step
  T* panels[kMatrices];  // of x, h_prev and m; see WeightGrad
};

// Packed rows [begin, end) of one step, or of a chunk. Packed row e is row
// first + e - begin of the chunk. With slices the last step of a chunk has its
// first rows, without slices the first step. The sums over all steps are added
// to `sums`.
template <class T>
struct BackwardRows {
  int64_t begin, end, first;
  const BackwardChunk<T>* chunk;
  T* sums;

  int64_t count() const { return end - begin; }
  int64_t InChunk(int64_t e) const { return first + e - begin; }
  BackwardRows From(int64_t e, int64_t e_end) const {
    return {e, e_end, InChunk(e), chunk, sums};
  }
};

template <class T>
struct Backward;

// The functions that are compiled for each cell; see step.h.
template <class T>
struct BackwardFunctions {
  void (*run_slice)(const Backward<T>&, int64_t slice, int thread);
  // The cell's equations of rows of a step, for a group of units from n on.
  void (*run_cells)(const Backward<T>&, const BackwardRows<T>&, int64_t n);
  // The same up to the second product, of a cell that has one. Null for others.
  void (*begin_cells)(const Backward<T>&, const BackwardRows<T>&, int64_t n);
  // For a cell that reduces rows: the same for all units, and the sums over all
  // steps for one vector of units. Null for others.
  void (*run_rows)(const Backward<T>&, const BackwardRows<T>&, int thread);
  void (*write_sums)(const Backward<T>&, int64_t u);
  // Of a cell with an output gate.
  void (*restore_h)(const Backward<T>&, int64_t n, int64_t end);
};

template <class T>
struct Backward {
  using V = VecT<T>;
  using Rows = BackwardRows<T>;
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kBytes = sizeof(T);
  static constexpr bool kCanRound = kDotsPairs && std::is_same_v<T, float>;
  // Values of a row for which a layer-normalised cell has memory; see
  // LayerNormBackward::Value.
  static constexpr int kRowValues = 18;

  Backward(const PlannedBackward<T>& pass,
           const BackwardFunctions<T>& functions)
      : args(*pass.layer),
        functions(functions),
        format(pass.plan.format),
        schedule(pass.plan.schedule),
        chunk_buffers(schedule.slices() > 0 ? schedule.threads() : 2) {}

  int threads() const { return schedule.threads(); }
  int64_t Phases() const { return schedule.Phases(); }
  bool projected() const { return args.config.projected(); }
  // Whether a step has a second product, that of m.
  bool multiplies_m() const { return projected() || shape.resets_before; }
  // Without a projection h = o * co, computed again where h is not given.
  bool restores_h() const { return !args.h && args.weights_grad.recurrent; }
  // Whether the gradient of any step's previous h is needed.
  bool needs_h_grad() const { return steps > 1 || args.wants_h0_grad; }
  bool multiplies_x_grad() const { return args.weights.input && args.x_grad; }
  // Whether a product reads dz.
  bool keeps_z_grad() const {
    return needs_h_grad() || shape.resets_before || args.weights_grad.input ||
           args.weights_grad.recurrent || args.x_grad;
  }
  bool rounds() const { return kCanRound && RoundsFactors(format); }
  int64_t CellWords() const { return Words(cell_size, format); }
  const int* order() const { return args.config.gate_order.block.data(); }
  int GateBlock(int part) const { return order()[part]; }

  // Where the values of a packed row are.
  PackedRow At(int64_t e) const { return valid.At(e); }
  const T* X(const PackedRow& at) const {
    return args.x + at.input * args.x_stride;
  }
  const T* PreviousH(const PackedRow& at) const {
    if (at.previous < 0) return args.h0.data + at.batch * hidden_size;
    if (restored_h) return restored_h + at.previous * hidden_size;
    return args.h + at.previous_output * args.h_stride;
  }
  V Saved(int k, const PackedRow& at, int64_t u) const {
    return LoadSaved(args.saved, k, at.index, at.output, u, cell_size - u);
  }
  // The state that the step reads, of which activation k is the new value.
  V PreviousState(int k, const PackedRow& at, int64_t u) const {
    if (at.previous >= 0) return Saved(k, valid.Before(at), u);
    return LoadN(args.c0.data + at.batch * cell_size + u, cell_size - u);
  }
  T* StateGrad(const PackedRow& at) const {
    return state_grad + at.batch * cell_size;
  }
  // The gradient of h from the steps after this one; at the end that of h0.
  T* RunningHGrad(const PackedRow& at) const {
    return args.h0_grad.data + at.batch * hidden_size;
  }
  V UpstreamH(const PackedRow& at, int64_t u) const {
    if (!args.h_grad) return V{};
    return LoadN(args.h_grad + at.output * args.h_grad_stride + u,
                 hidden_size - u);
  }
  T* ZGrad(const Rows& rows, int64_t e, int part) const {
    return rows.chunk->z_grad + rows.InChunk(e) * z_stride + part * cell_size;
  }
  // The gradient of the second product: dh, or dzn.
  T* SecondGrad(const Rows& rows, int64_t e) const {
    if (!projected()) return ZGrad(rows, e, kGateN);
    return rows.chunk->h_grad + rows.InChunk(e) * padded_hidden;
  }
  T* M(const Rows& rows, int64_t e) const {
    return rows.chunk->m + rows.InChunk(e) * cell_size;
  }
  T* MGrad(const Rows& rows, int64_t e) const {
    return rows.chunk->m_grad + (e - rows.begin) * cell_size;
  }

  // Without slices: the packed rows of a chunk, and of a step.
  Rows RowsOfChunk(int64_t chunk) const {
    const BackwardSchedule::Steps of = schedule.StepsOf(chunk);
    return {valid.Begin(of.begin), valid.Begin(of.end), 0,
            &chunk_buffers[chunk % 2], sums};
  }
  // `chunk` has the step, or the step before it.
  Rows RowsOf(int64_t chunk, int64_t step) const {
    return RowsOfChunk(chunk - (step < schedule.StepsOf(chunk).end ? 0 : 1))
        .From(valid.Begin(step), valid.Begin(step + 1));
  }
  // The first packed row of a step that belongs to the slice or a later one.
  int64_t SliceBegin(int64_t slice, int64_t step) const {
    return valid.Find(step, schedule.FirstBatchRow(slice));
  }

  // Sums over all steps, of dz and of dz times the state that a peephole reads:
  // [pre-activations, H'] each. A cell that reduces rows uses them otherwise.
  T* BiasSums(T* set, int part) const { return set + part * padded_size; }
  T* PeepholeSums(T* set, int part) const {
    return set + (shape.pre_activations + part) * padded_size;
  }
  // The number of sets of sums over rows, which are added at the end.
  int64_t SumSets() const {
    if (schedule.slices() > 0) return schedule.slices();
    return shape.reduces_rows ? Max(schedule.bands(), 1) : 1;
  }
  int64_t SumsSize() const { return 2 * shape.pre_activations * padded_size; }
  void ClearSums(T* set, int64_t from, int64_t to) const {
    for (int k = 0; k < 2 * shape.pre_activations; ++k) {
      std::fill(set + k * padded_size + from, set + k * padded_size + to, T(0));
    }
  }
  int64_t RowValuesSize() const {
    return shape.reduces_rows ? kRowValues * padded_size : 0;
  }
  T* WeightGradScratch(int thread) const {
    return grad_scratch + thread * WeightGrad<T>::kScratch;
  }
  // The size of a slice's partial sums of all weight gradients.
  int64_t WeightSumsSize() const {
    int64_t size = 0;
    for (const WeightGrad<T>& grad : weight_grads) size += grad.SumsSize();
    return size;
  }

  // Assigns the arrays in scratch memory for `threads` threads.
  void Place(Scratch<T>* scratch, int threads) {
    packed_recurrent = scratch->Take(needs_h_grad() ? to_h.PackedSize() : 0);
    packed_input = scratch->Take(multiplies_x_grad() ? to_x.PackedSize() : 0);
    packed_second =
        scratch->Take(multiplies_m() ? padded_size * hidden_size : 0);
    state_grad = shape.has_cell_state ? args.c0_grad.data
                 : shape.has_state    ? scratch->Take(batch * cell_size)
                                      : nullptr;
    restored_h =
        restores_h() ? scratch->Take(packed_rows * hidden_size) : nullptr;
    sums = scratch->Take(SumSets() * SumsSize());
    row_values = scratch->Take(threads * RowValuesSize());
    weight_sums = scratch->Take(schedule.slices() * WeightSumsSize());
    grad_scratch = scratch->Take(threads * WeightGrad<T>::kScratch);
    for (BackwardChunk<T>& chunk : chunk_buffers) PlaceChunk(scratch, &chunk);
  }

  // Members are initialised in this order, from those above them.
  const EngineBackward<T>& args;
  const BackwardFunctions<T> functions;
  const CellShape shape = CellShapeOf(args.config.cell);
  const int64_t input_size = args.config.input_size;
  const int64_t cell_size = args.config.cell_size;
  const int64_t hidden_size = args.config.hidden_size;
  const int64_t padded_size = RoundUpToLanes<T>(cell_size);
  const int64_t padded_hidden = RoundUpToLanes<T>(hidden_size);
  const PackedSequence& valid = *args.valid;
  const int64_t batch = valid.batch, steps = valid.steps;
  const int64_t packed_rows = valid.size();
  // Of both factors of products. Weight gradients round dz when they pack it.
  const WeightFormat format;
  // A row of dz. Without the vector behind it, rows would often be a power of
  // two apart, and a column would occupy few sets of the cache.
  const int64_t z_stride =
      RoundUpToLanes<T>(shape.pre_activations * cell_size) + kL;
  const BackwardSchedule schedule;
  const int64_t group = schedule.group();  // units in an item of a step
  const TransposedProduct<T> to_x = {
      args, args.weights.input, args.input_dropout.data, input_size,
      0,    shape.input,        kProductColumns<T>,      format};
  const TransposedProduct<T> to_h = {args,
                                     args.weights.recurrent,
                                     args.recurrent_dropout.data,
                                     hidden_size,
                                     shape.first_recurrent,
                                     shape.recurrent,
                                     Min(group, kProductColumns<T>),
                                     format};
  const WeightGrad<T> weight_grads[kMatrices] = {
      Grad(kInputWeights), Grad(kRecurrentWeights), Grad(kSecond)};
  // Scratch memory.
  T* state_grad = nullptr;        // [B, H]
  T* restored_h = nullptr;        // [V, H], where h is not given
  T* packed_recurrent = nullptr;  // see TransposedProduct
  T* packed_input = nullptr;      // see TransposedProduct
  T* packed_second = nullptr;     // [groups, P, vectors, lanes]
  T* sums = nullptr;              // [SumSets(), SumsSize()]
  T* row_values = nullptr;        // [threads, kRowValues, H']
  T* weight_sums = nullptr;       // [slices, WeightSumsSize()]
  T* grad_scratch = nullptr;      // [threads, WeightGrad::kScratch]
  // With slices one for each thread. Without, two alternate: the first step of
  // a chunk that is computed reads dz of the chunk computed before.
  std::vector<BackwardChunk<T>> chunk_buffers;

 private:
  WeightGrad<T> Grad(WeightMatrix matrix) const {
    const RnnWeights<T>& to = args.weights_grad;
    WeightGrad<T> grad;
    if (matrix == kInputWeights) {
      grad = {to.input,    input_size, cell_size,
              shape.input, order(),    args.input_dropout.data};
    } else if (matrix == kRecurrentWeights) {
      grad = {to.recurrent,
              hidden_size,
              cell_size,
              shape.recurrent,
              order() + shape.first_recurrent,
              args.recurrent_dropout.data};
    } else if (projected()) {
      grad = {to.projection, cell_size, hidden_size, 1,
              kOrderSingle.block.data()};
    } else if (shape.resets_before) {
      grad = {to.recurrent, cell_size, hidden_size, 1, order() + kGateN};
    }
    grad.capacity = schedule.chunk_rows();
    grad.format = format;
    return grad;
  }

  void PlaceChunk(Scratch<T>* scratch, BackwardChunk<T>* chunk) const {
    const int64_t rows = schedule.chunk_rows();
    const auto take = [&](bool needed, int64_t size) {
      return scratch->Take(needed ? size : 0);
    };
    chunk->z_grad = take(keeps_z_grad(), rows * z_stride);
    chunk->rounded_z_grad =
        take(rounds(), rows * shape.pre_activations * CellWords());
    chunk->h_grad = take(projected(), rows * padded_hidden);
    chunk->m = take(multiplies_m(), rows * cell_size);
    chunk->m_grad = take(multiplies_m(), schedule.step_rows() * cell_size);
    for (int k = 0; k < kMatrices; ++k) {
      chunk->panels[k] = scratch->Take(weight_grads[k].PanelsSize());
    }
  }
};

// Stores dz of packed row e, pre-activation `part`, in the types that the
// products read.
template <class T>
TF_LSTM_OPS_INLINE void StoreZGrad(const Backward<T>& f,
                                   const BackwardRows<T>& rows, int64_t e,
                                   int part, int64_t u, VecT<T> z) {
  const int64_t width = f.cell_size - u;
  if (f.keeps_z_grad()) StoreN(z, f.ZGrad(rows, e, part) + u, width);
  if constexpr (Backward<T>::kCanRound) {
    if (!f.rounds()) return;
    T* row = rows.chunk->rounded_z_grad +
             (rows.InChunk(e) * f.shape.pre_activations + part) * f.CellWords();
    StorePairs(z, row, u, f.cell_size);
  }
}

// Writes the total of a sum over all steps, unless `to` is null.
template <class T>
void WriteTotal(const Backward<T>& f, const T* sums, int64_t u, T* to) {
  if (!to) return;
  VecT<T> total = Load(sums + u);
  for (int64_t k = 1; k < f.SumSets(); ++k) {
    total = total + Load(sums + k * f.SumsSize() + u);
  }
  StoreN(total, to + u, f.cell_size - u);
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STATE_H_
