// Forward<T>: the state of the forward pass of one layer direction: arguments,
// sizes, order of the work, memory, and where the values of a row are.
//
// Sizes: B rows of the batch, V packed rows, I input size, H cell size, P
// hidden size, at most H; H' is H rounded up to whole vectors.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STATE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STATE_H_

#include "backends/cpu/forward_engine.h"
#include "backends/cpu/memory/scratch.h"
#include "backends/cpu/simd/forward/packed_layer.h"
#include "backends/cpu/simd/vector/cell.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

using cpu::ForwardSchedule, cpu::Scratch;

// Packed rows [begin, end) of a step, or of a chunk of steps.
template <class T>
struct ForwardRows {
  int64_t begin, end;
  T* z;          // [end - begin, z parts, H'], or null
  T* dropped_x;  // [end - begin, input parts, I], x after dropout, or null
  // [end - begin, .], h_prev as quads, then m as quads; null: with a format
  // that is not of quads.
  T* quads = nullptr;
};

// Values that the second half of the equations reads: the update gate and the
// candidate's input part.
enum HeldValue { kHeldU, kHeldN, kHeldValues };

template <class T>
struct Forward;

// The functions that are compiled for each cell; see step.h.
template <class T>
struct ForwardFunctions {
  void (*run_slice)(const Forward<T>&, int64_t slice, int thread);
  void (*run_step)(const Forward<T>&, int64_t step, Units, int thread);
  // The equations of rows, of a cell that reduces rows.
  void (*apply_cell_to_rows)(const Forward<T>&, const ForwardRows<T>&);
  // The second half of the equations for a group of units of rows of a step,
  // of a cell with a second product.
  void (*finish_step)(const Forward<T>&, const ForwardRows<T>&, const Units&);
};

template <class T>
struct Forward {
  using V = VecT<T>;
  static constexpr int64_t kBandRows = ForwardSchedule::kBandRows;

  Forward(const PlannedForward<T>& pass, const ForwardFunctions<T>& functions)
      : args(*pass.layer),
        functions(functions),
        schedule(pass.plan.schedule),
        keeps_weights(pass.packed != nullptr),
        is_packed(pass.is_packed),
        packed(args, pass.plan.format) {
    if (!keeps_weights) return;
    Scratch<T> memory(pass.packed);
    packed.Place(&memory);
  }

  bool projected() const { return args.config.projected(); }
  // Whether a step has a second product, that of m.
  bool multiplies_m() const { return packed.has_second; }
  // Elements of a row of z.
  int64_t z_row() const { return shape.z_parts() * padded_size; }

  int GateBlock(int part) const { return args.config.gate_order.block[part]; }

  // Rows of a tile.
  int64_t most_rows() const { return MostRows(format); }
  // Whether x and h are rounded to pairs of bfloat16.
  bool rounds() const { return RoundsFactors(format); }
  // Whether products multiply quads: a row needs all of its elements before it
  // is rounded.
  static constexpr bool kCanQuads = kHasQuads && std::is_same_v<T, float>;
  bool multiplies_quads() const { return kCanQuads && IsQuads(format); }
  // Whether x is rounded before the steps. With dropout, ApplyInputDropout
  // rounds it.
  bool rounds_x() const {
    return rounds() && args.weights.input && !args.input_dropout.data;
  }
  // Words of a row of `width` elements that is multiplied with packed weights.
  int64_t FactorWords(int64_t width) const {
    return TF_LSTM_OPS_SIMD::FactorWords(width, format);
  }
  // Copies of h after dropout or rounding; 0: products read h itself.
  int64_t effective_h_sets() const {
    if (args.recurrent_dropout.data) return shape.recurrent;
    return rounds() && !multiplies_quads() ? 1 : 0;
  }

  // Where the values of a packed row are.
  PackedRow At(int64_t e) const { return valid.At(e); }
  const T* X(const PackedRow& at) const {
    return args.x + at.input * args.x_stride;
  }
  T* H(const PackedRow& at) const { return args.h + at.output * args.h_stride; }
  const T* PreviousH(const PackedRow& at) const {
    return at.previous < 0 ? args.h0.data + at.batch * hidden_size
                           : args.h + at.previous_output * args.h_stride;
  }
  T* State(const PackedRow& at) const { return state + at.batch * cell_size; }
  // Stores a vector of saved activation k, unless nothing is saved.
  void Save(int k, const PackedRow& at, int64_t u, V v) const {
    if (!args.saved.Has(k)) return;
    args.saved.At(k, at.index, at.output, u,
                  [&](auto* to) { StoreN(v, to, cell_size - u); });
  }
  // The rows that the second product reads; h without one.
  T* M(const PackedRow& at) const {
    return multiplies_m() ? m + at.batch * cell_size : H(at);
  }
  T* Held(HeldValue k, const PackedRow& at) const {
    return held + (k * batch + at.batch) * cell_size;
  }
  // h of a row of the batch after `count` valid steps, after dropout or
  // rounding, as pre-activation first_recurrent + p reads it. Two buffers
  // alternate, since other items still read the preceding step's h.
  T* EffectiveH(int64_t row, int64_t count, int p) const {
    return effective_h +
           (((count & 1) * effective_h_sets() + p) * batch + row) *
               FactorWords(hidden_size);
  }

  // The rows of x and of the previous h that products read.
  const T* FactorX(const PackedRow& at, const ForwardRows<T>& rows) const {
    const int64_t words = FactorWords(input_size);
    if (rows.dropped_x) {
      return rows.dropped_x + (at.index - rows.begin) * shape.input * words;
    }
    return rounds_x() ? rounded_x + at.index * words : X(at);
  }
  const T* FactorH(const PackedRow& at) const {
    return effective_h_sets() == 0 ? PreviousH(at)
                                   : EffectiveH(at.batch, at.ordinal, 0);
  }

  // The rows of m that the second product reads.
  const T* FactorM(const PackedRow& at, const ForwardRows<T>& rows) const {
    return kCanQuads && rows.quads ? Quads(at.index, rows) : M(at);
  }
  // A row of rows.quads.
  T* Quads(int64_t e, const ForwardRows<T>& rows) const {
    return rows.quads + (e - rows.begin) * quad_words();
  }

  // The rows of a step: all of them, or those of a slice.
  ForwardRows<T> RowsOf(int64_t step, int thread) const {
    return {valid.Begin(step), valid.Begin(step + 1),
            z + schedule.InChunk(valid, step) * z_row(), nullptr,
            QuadsOf(thread)};
  }
  ForwardRows<T> RowsOf(int64_t step, int64_t slice, int thread) const {
    return {schedule.SliceBegin(valid, slice, step),
            schedule.SliceBegin(valid, slice + 1, step),
            shape.reduces_rows
                ? slice_z + thread * SliceZSize(schedule.slice_rows())
                : nullptr,
            DroppedX(thread), QuadsOf(thread)};
  }
  // The thread's memory for kBandRows rows of x after dropout, or null.
  T* DroppedX(int thread) const {
    return args.input_dropout.data ? dropped_x + thread * DroppedXSize()
                                   : nullptr;
  }

  int threads() const { return schedule.threads(); }
  int64_t Phases() const { return schedule.Phases(valid); }
  // Assigns the arrays in scratch memory for `threads` threads.
  void Place(Scratch<T>* scratch, int threads) {
    Place(scratch, threads, schedule.MaxChunkRows(valid), schedule.slice_rows(),
          schedule.slice_rows() > 0 ? schedule.slice_rows() : batch);
  }
  // Counts the memory that suffices for passes of as many threads, and of no
  // more rows and steps, whatever their schedules are.
  int64_t MostScratch(const cpu::ForwardProblem& problem, int threads) {
    Scratch<T> size(nullptr);
    Place(&size, threads, cpu::MostChunkRows(problem, threads),
          Min(batch, kBandRows), batch);
    return size.used();
  }
  void Place(Scratch<T>* scratch, int threads, int64_t chunk_rows,
             int64_t slice_rows, int64_t rows_of_thread) {
    if (!keeps_weights) packed.Place(scratch);
    z = scratch->Take(chunk_rows * z_row());
    slice_z = scratch->Take(threads * SliceZSize(slice_rows));
    state = args.final_c.data ? args.final_c.data
            : shape.has_state ? scratch->Take(batch * cell_size)
                              : nullptr;
    m = scratch->Take(multiplies_m() ? batch * cell_size : 0);
    held = scratch->Take(shape.resets_before ? kHeldValues * batch * cell_size
                                             : 0);
    effective_h = scratch->Take(2 * effective_h_sets() * batch *
                                FactorWords(hidden_size));
    rounded_x =
        scratch->Take(rounds_x() ? packed_rows * FactorWords(input_size) : 0);
    dropped_x = scratch->Take(threads * DroppedXSize());
    quads_of_thread = multiplies_quads() ? rows_of_thread * quad_words() : 0;
    quads = scratch->Take(threads * quads_of_thread);
    rounded_rows = reinterpret_cast<int64_t*>(
        scratch->Take(multiplies_quads()
                          ? threads * kLineWords * (sizeof(int64_t) / sizeof(T))
                          : 0));
  }

  // Members are initialised in this order, from those above them.
  const EngineForward<T>& args;
  const ForwardFunctions<T> functions;
  const ForwardSchedule schedule;
  const CellShape shape = CellShapeOf(args.config.cell);
  const bool keeps_weights, is_packed;
  const int64_t input_size = args.config.input_size;
  const int64_t cell_size = args.config.cell_size;
  const int64_t hidden_size = args.config.hidden_size;
  const int64_t padded_size = RoundUpToLanes<T>(cell_size);
  const PackedSequence& valid = *args.valid;
  const int64_t batch = valid.batch, steps = valid.steps;
  const int64_t packed_rows = valid.size();
  PackedLayer<T> packed;
  const WeightFormat format = packed.format;
  // Scratch memory.
  T* z = nullptr;            // [., z parts, H'] of a chunk; not with slices
  T* slice_z = nullptr;      // [threads, slice rows, z parts, H']
  T* state = nullptr;        // [B, H]
  T* m = nullptr;            // [B, H]
  T* held = nullptr;         // [kHeldValues, B, H]
  T* effective_h = nullptr;  // [2, effective_h_sets(), B, P]
  T* rounded_x = nullptr;    // [V, I]
  T* dropped_x = nullptr;    // [threads, kBandRows, input parts, I]
  T* quads = nullptr;        // [threads, rows of a step, quad_words()]
  int64_t quads_of_thread = 0;
  // What the quads of each thread are of: 2 * step + 1 of m, 2 * step of
  // h_prev, -1 at first. In cache lines of their own.
  static constexpr int64_t kLineWords = 64 / sizeof(int64_t);
  int64_t* rounded_rows = nullptr;

 private:
  // Of a row of h or m.
  int64_t quad_words() const { return FactorWords(cell_size); }
  T* QuadsOf(int thread) const {
    return multiplies_quads() ? quads + thread * quads_of_thread : nullptr;
  }
  // With slices, a cell that reduces rows has a z for each thread.
  int64_t SliceZSize(int64_t slice_rows) const {
    return shape.reduces_rows ? slice_rows * z_row() : 0;
  }
  int64_t DroppedXSize() const {
    return args.input_dropout.data
               ? kBandRows * shape.input * FactorWords(input_size)
               : 0;
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STATE_H_
