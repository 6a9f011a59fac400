// BackwardPass: the backward pass of a layer direction as one job, all but the
// cell's equations, which cell_backward.h adds. Compiled once for all cells.
// backward_schedule.h describes the order of the work.
//
// Notation: dv is the gradient with respect to v; m is the hidden state before
// the projection.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_

#include <algorithm>
#include <vector>

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/backward_schedule.h"
#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/scratch.h"
#include "backends/cpu/simd/transposed_product.h"
#include "backends/cpu/simd/weight_grad.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class BackwardPass {
 public:
  using Element = T;
  using Schedule = BackwardSchedule;
  using Job = Schedule::Job;

  BackwardPass(const EngineBackward<T>& args, const CellShape& shape,
               int threads)
      : args_(args),
        shape_(shape),
        weights_grad_(args.weights_grad),
        input_(args.config.input_size),
        cell_(args.config.cell_size),
        hidden_(args.config.hidden_size),
        padded_(RoundUpToLanes<T>(cell_)),
        padded_hidden_(RoundUpToLanes<T>(hidden_)),
        batch_(args.packed->batch),
        packed_rows_(args.packed->size()),
        steps_(args.packed->steps),
        pairs_(kCanRound && args.config.bfloat16),
        z_stride_(RoundUpToLanes<T>(shape.pre_activations * cell_) + kL),
        schedule_(batch_, steps_, Projected(), WeightBytes(),
                  shape.pre_activations * cell_ * kBytes),
        group_(Group(threads)),
        to_x_({input_, cell_, 0, shape.input, args.config.gate_order},
              args.weights.input, kBlock, pairs_),
        to_h_({hidden_, cell_, shape.first_recurrent, shape.recurrent,
               args.config.gate_order},
              args.weights.recurrent, Min(group_, kBlock), pairs_),
        input_grad_({input_, cell_, shape.input, OrderFrom(0),
                     args.input_dropout.data != nullptr},
                    weights_grad_.input, schedule_.chunk_rows(), pairs_),
        recurrent_grad_(
            {hidden_, cell_, shape.recurrent, OrderFrom(shape.first_recurrent),
             args.recurrent_dropout.data != nullptr},
            weights_grad_.recurrent, schedule_.chunk_rows(), pairs_),
        projection_grad_(
            {cell_, hidden_, 1, kOrderSingle},
            Projected() ? weights_grad_.projection : GateMatrices<T>(),
            schedule_.chunk_rows(), pairs_),
        begin_(args.packed->begin.data()),
        batch_row_(args.packed->batch_row.data()),
        input_row_(args.packed->input_row.data()),
        output_row_(args.packed->output_row.data()),
        previous_(args.packed->previous.data()),
        chunks_(schedule_.slices() > 0 ? threads : 2) {}

  // Assigns the pieces of scratch memory for `threads` threads.
  void Place(Scratch<T>* scratch, int threads) {
    packed_recurrent_ = scratch->Take(NeedsHGrad() ? to_h_.PackedSize() : 0);
    packed_input_ = scratch->Take(MultipliesXGrad() ? to_x_.PackedSize() : 0);
    packed_projection_ = scratch->Take(Projected() ? padded_ * hidden_ : 0);
    state_grad_ = shape_.has_cell_state ? args_.c0_grad.data
                  : shape_.has_state    ? scratch->Take(batch_ * cell_)
                                        : nullptr;
    co_ = scratch->Take(RestoresH() ? batch_ * cell_ : 0);
    x_grad_rows_ =
        scratch->Take(args_.adds_to_x_grad ? packed_rows_ * args_.x_stride : 0);
    sums_ = scratch->Take(Max(schedule_.slices(), 1) * SumsSize());
    weight_sums_ = scratch->Take(schedule_.slices() * WeightSumsSize());
    blocks_ = scratch->Take(threads * WeightGrad<T>::kScratch);
    for (int k = 0; k < (schedule_.slices() > 0 ? threads : 2); ++k) {
      chunks_[k] = PlaceChunk(scratch);
    }
  }

  int64_t Phases() const {
    return schedule_.FinishPhase() + (args_.adds_to_x_grad ? 2 : 1);
  }

  int64_t Items(int64_t phase) const {
    const Schedule::Phase at = schedule_.At(phase);
    switch (at.job) {
      case Job::kPrepare:
        return Blocks(cell_, group_) +
               (MultipliesXGrad() ? Blocks(input_, kBlock) : 0);
      case Job::kSlices:
        return schedule_.slices();
      case Job::kProject:
      case Job::kCells:
        if (at.step < schedule_.StepsOf(at.chunk).begin) return 0;
        return Blocks(
            Projected() && at.job == Job::kProject ? padded_hidden_ : padded_,
            group_);
      case Job::kGather:
        return PanelItems();
      case Job::kProducts:
        return ProductItems(at.chunk);
      case Job::kFinish:
        return Blocks(padded_, group_) +
               (schedule_.slices() > 0
                    ? input_grad_.TotalItems() + recurrent_grad_.TotalItems() +
                          projection_grad_.TotalItems()
                    : 0);
      case Job::kAddXGrad:
        return Blocks(packed_rows_, kRowChunk);
    }
    return 0;
  }

  void Run(int64_t phase, int64_t item, int thread) {
    const Schedule::Phase at = schedule_.At(phase);
    switch (at.job) {
      case Job::kPrepare:
        return Prepare(item);
      case Job::kSlices:
        return RunSlice(item, thread);
      case Job::kProject:
      case Job::kCells:
        return RunStep(at, item * group_);
      case Job::kGather:
        return GatherChunk(at.chunk, item);
      case Job::kProducts:
        return Multiply(at.chunk, item, thread);
      case Job::kFinish:
        return Finish(item);
      case Job::kAddXGrad:
        return AddXGrad(item * kRowChunk,
                        Min((item + 1) * kRowChunk, packed_rows_));
    }
  }

 protected:
  using V = VecT<T>;
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kBytes = sizeof(T);
  static constexpr int64_t kCellRows = 8;
  static constexpr bool kCanRound = kDotsPairs && std::is_same_v<T, float>;

  // What is kept of the packed rows of a chunk, by the row's number in it.
  struct Chunk {
    T* z_grad;              // [., parts, H], rows z_stride_ apart
    T* rounded_z_grad;      // [., parts, H / 2], of pairs
    T* previous_h;          // [., P], where h is restored
    T* h_grad;              // [., P], with a projection
    T* unprojected_h;       // m, [., H], with a projection
    T* unprojected_h_grad;  // dm, [., H], with a projection
    T* x_panels;
    T* h_panels;
    T* unprojected_h_panels;
  };

  // Packed rows [begin, end) of one step. Packed row e is row first + e - begin
  // of the chunk. The sums over all steps are added to `sums`.
  struct Rows {
    int64_t begin, end, first;
    const Chunk* chunk;
    T* sums;

    int64_t InChunk(int64_t e) const { return first + e - begin; }
    Rows From(int64_t e, int64_t e_end) const {
      return {e, e_end, InChunk(e), chunk, sums};
    }
  };

  ~BackwardPass() = default;

  // The cell's equations backward for packed rows [begin, end), one vector of
  // units: from the gradients of h and of the state to dz and the gradient of
  // the previous state.
  virtual void Cells(const Rows& rows, int64_t begin, int64_t end,
                     int64_t u) = 0;

  bool Projected() const { return args_.config.projected(); }
  // Without a projection h = o * co, computed again where h is not given.
  bool RestoresH() const { return !args_.h && weights_grad_.recurrent; }
  // Whether a product reads dz.
  bool KeepsZGrad() const {
    return NeedsHGrad() || weights_grad_.input || weights_grad_.recurrent ||
           args_.x_grad;
  }

  int64_t CellWords() const { return Words(cell_, pairs_); }

  int Block(int part) const { return args_.config.gate_order.block[part]; }

  V UpstreamH(int64_t e, int64_t u) const {
    if (!args_.h_grad) return V{};
    return LoadN(args_.h_grad + output_row_[e] * args_.h_grad_stride + u,
                 hidden_ - u);
  }

  // Of a row of a chunk.
  T* ZGrad(const Chunk& chunk, int64_t row, int part) const {
    return chunk.z_grad + row * z_stride_ + part * cell_;
  }
  BFloat16Pair* RoundedZGrad(const Chunk& chunk, int64_t row, int part) const {
    return reinterpret_cast<BFloat16Pair*>(
        chunk.rounded_z_grad +
        (row * shape_.pre_activations + part) * CellWords());
  }

  const T* PreviousH(int64_t e) const {
    return previous_[e] < 0
               ? args_.h0.data + batch_row_[e] * hidden_
               : args_.h + output_row_[previous_[e]] * args_.h_stride;
  }

  // Sums over all steps, of dz and of dz times the state that a peephole reads:
  // [pre-activations, padded H] each.
  T* BiasSums(T* sums, int part) const { return sums + part * padded_; }
  T* PeepholeSums(T* sums, int part) const {
    return sums + (shape_.pre_activations + part) * padded_;
  }

  const EngineBackward<T>& args_;
  const CellShape shape_;
  const RnnWeights<T>& weights_grad_;
  const int64_t input_, cell_, hidden_, padded_, padded_hidden_;
  const int64_t batch_, packed_rows_, steps_;
  const bool pairs_;  // factors of products are pairs of bfloat16
  // A row of dz. Without the vector behind it, rows would often be a power of
  // two apart, and a column would occupy few sets of the cache.
  const int64_t z_stride_;
  const BackwardSchedule schedule_;
  const int64_t group_;  // units in an item of a step
  const TransposedProduct<T> to_x_, to_h_;
  const WeightGrad<T> input_grad_, recurrent_grad_, projection_grad_;
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  T* state_grad_ = nullptr;  // [B, H]
  T* co_ = nullptr;  // [B, H], of the next packed row of each row of the batch

 private:
  static constexpr int64_t kBlock = kColumns * kL;  // columns of a product
  static constexpr int64_t kRowChunk = 64 * kRows;  // and rows, of one item
  static constexpr int64_t kPanels = 8 * kRows;  // columns of an item: gather

  // Whether the gradient of any step's previous h is needed.
  bool NeedsHGrad() const { return steps_ > 1 || args_.wants_h0_grad; }
  bool MultipliesXGrad() const { return args_.weights.input && args_.x_grad; }

  int64_t WeightBytes() const {
    const int64_t rows = hidden_ + (args_.weights.input ? input_ : 0);
    return rows * shape_.pre_activations * cell_ * kBytes;
  }

  // Units of an item of a step: a block of columns of a product, or without a
  // product a thread's share.
  int64_t Group(int threads) const {
    const int64_t vectors = padded_ / kL;
    if (schedule_.slices() > 0) return kBlock;
    const bool multiplies = NeedsHGrad() || Projected();
    return kL * Max(1, multiplies ? Min(vectors / (2 * threads), kColumns)
                                  : Blocks(vectors, threads));
  }

  // The blocks of the pre-activations from `first` on.
  GateOrder OrderFrom(int first) const {
    GateOrder order = {};
    for (int p = first; p < shape_.pre_activations; ++p) {
      order.block[p - first] = Block(p);
    }
    return order;
  }

  // Sizes of the sums of a slice.
  int64_t SumsSize() const { return 2 * shape_.pre_activations * padded_; }
  int64_t WeightSumsSize() const {
    return input_grad_.SumsSize() + recurrent_grad_.SumsSize() +
           projection_grad_.SumsSize();
  }

  Chunk PlaceChunk(Scratch<T>* scratch) const {
    const int64_t rows = schedule_.chunk_rows();
    const int64_t parts = shape_.pre_activations;
    Chunk chunk;
    chunk.z_grad = scratch->Take(KeepsZGrad() ? rows * z_stride_ : 0);
    chunk.rounded_z_grad =
        scratch->Take(pairs_ ? rows * parts * CellWords() : 0);
    chunk.previous_h = scratch->Take(RestoresH() ? rows * padded_ : 0);
    chunk.h_grad = scratch->Take(Projected() ? rows * padded_hidden_ : 0);
    chunk.unprojected_h = scratch->Take(Projected() ? rows * cell_ : 0);
    chunk.unprojected_h_grad =
        scratch->Take(Projected() ? schedule_.step_rows() * cell_ : 0);
    chunk.x_panels = scratch->Take(input_grad_.PanelsSize());
    chunk.h_panels = scratch->Take(recurrent_grad_.PanelsSize());
    chunk.unprojected_h_panels = scratch->Take(projection_grad_.PanelsSize());
    return chunk;
  }
  // Without slices: the packed rows of a chunk, and of a step.
  Rows RowsOfChunk(int64_t chunk) const {
    const Schedule::Steps steps = schedule_.StepsOf(chunk);
    return {begin_[steps.begin], begin_[steps.end], 0, &chunks_[chunk % 2],
            sums_};
  }
  Rows RowsOf(int64_t step) const {
    return RowsOfChunk(schedule_.ChunkOf(step))
        .From(begin_[step], begin_[step + 1]);
  }

  // Items: groups of units; blocks of columns of x.
  void Prepare(int64_t item) {
    const int64_t groups = Blocks(cell_, group_);
    if (item >= groups) {
      return to_x_.Pack((item - groups) * kBlock, packed_input_);
    }
    const int64_t n = item * group_;
    const int64_t end = Min(n + group_, padded_);
    if (schedule_.slices() == 0) ClearSums(sums_, n, end);
    if (shape_.has_state && !shape_.has_cell_state) {
      for (int64_t b = 0; b < batch_; ++b) {
        T* state = state_grad_ + b * cell_;
        std::fill(state + n, state + Min(end, cell_), T(0));
      }
    }
    if (NeedsHGrad()) to_h_.Pack(n, packed_recurrent_);
    if (!Projected()) return;
    const GateMatrices<const T>& w = args_.weights.projection;
    w.Read(0, [&](const auto* data) {
      PackBlock(data, w.column_stride, w.row_stride, hidden_, n,
                Min(end, cell_), packed_projection_ + n * hidden_, false);
    });
  }

  void ClearSums(T* sums, int64_t begin, int64_t end) const {
    for (int k = 0; k < 2 * shape_.pre_activations; ++k) {
      std::fill(sums + k * padded_ + begin, sums + k * padded_ + end, T(0));
    }
  }

  void RunSlice(int64_t slice, int thread) {
    const Chunk& chunk = chunks_[thread];
    T* sums = sums_ + slice * SumsSize();
    ClearSums(sums, 0, padded_);
    for (int64_t c = 0; c < schedule_.chunks(); ++c) {
      int64_t count = 0;
      const Schedule::Steps steps = schedule_.StepsOf(c);
      for (int64_t step = steps.end - 1; step >= steps.begin; --step) {
        const Rows rows = {SliceBegin(slice, step), SliceBegin(slice + 1, step),
                           count, &chunk, sums};
        count += rows.end - rows.begin;
        if (rows.begin < rows.end) RunStepOfSlice(rows, step);
      }
      const bool add = c > 0;
      T* scratch = blocks_ + thread * WeightGrad<T>::kScratch;
      T* to = weight_sums_ + slice * WeightSumsSize();
      input_grad_.AddToSums(InputFactors(chunk, count), add, scratch, to);
      to += input_grad_.SumsSize();
      recurrent_grad_.AddToSums(RecurrentFactors(chunk, count), add, scratch,
                                to);
      to += recurrent_grad_.SumsSize();
      projection_grad_.AddToSums(ProjectionFactors(chunk, count), add, scratch,
                                 to);
    }
    AddState(schedule_.SliceBegin(slice), schedule_.SliceBegin(slice + 1), 0,
             cell_);
  }

  void RunStepOfSlice(const Rows& rows, int64_t step) {
    for (int64_t n = 0; Projected() && n < hidden_; n += group_) {
      LoadHGrad(rows, n);
    }
    for (int64_t n = 0; n < cell_; n += group_) RunCells(rows, n);
    for (int64_t n = 0; n < hidden_; n += group_) ToPreviousH(rows, step, n);
    for (int64_t k = 0; k < PanelItems(); ++k) Gather(rows, k);
    for (int64_t n = 0; args_.x_grad && n < input_; n += kBlock) ToX(rows, n);
  }

  // The first packed row of a step that belongs to the slice or a later one.
  int64_t SliceBegin(int64_t slice, int64_t step) const {
    const int64_t row = schedule_.SliceBegin(slice);
    const int64_t begin = begin_[step], end = begin_[step + 1];
    if (end - begin == batch_) return begin + row;
    return std::lower_bound(batch_row_ + begin, batch_row_ + end, row) -
           batch_row_;
  }

  // One step without slices, for a group of units from n on.
  void RunStep(const Schedule::Phase& at, int64_t n) {
    if (at.job == Job::kProject) {
      if (at.step + 1 < steps_) {
        ToPreviousH(RowsOf(at.step + 1), at.step + 1, n);
      }
      if (Projected()) return LoadHGrad(RowsOf(at.step), n);
    }
    RunCells(RowsOf(at.step), n);
  }

  void RunCells(const Rows& rows, int64_t n) {
    const int64_t n_end = Min(n + group_, cell_);
    if (Projected()) ProjectBack(rows, n, n_end);
    // A few rows at a time, so that each row's cache lines are used at once.
    for (int64_t e = rows.begin; e < rows.end; e += kCellRows) {
      const int64_t end = Min(e + kCellRows, rows.end);
      for (int64_t u = n; u < n_end; u += kL) Cells(rows, e, end, u);
    }
  }

  // With a projection: the gradients of h.
  void LoadHGrad(const Rows& rows, int64_t n) const {
    const int64_t end = Min(n + group_, hidden_);
    for (int64_t e = rows.begin; e < rows.end; ++e) {
      T* to = rows.chunk->h_grad + rows.InChunk(e) * padded_hidden_;
      for (int64_t u = n; u < end; u += kL) {
        const T* dh = args_.h0_grad.data + batch_row_[e] * hidden_ + u;
        StoreN(LoadN(dh, hidden_ - u) + UpstreamH(e, u), to + u, hidden_ - u);
      }
    }
  }

  // With a projection: the gradients of m, dm = Wp' dh.
  void ProjectBack(const Rows& rows, int64_t n, int64_t n_end) const {
    WithConstant<kColumns>(Blocks(n_end - n, kL), [&](auto columns) {
      MultiplyBlock<decltype(columns)::value>(
          [&](int64_t e) {
            return rows.chunk->h_grad + rows.InChunk(e) * padded_hidden_;
          },
          packed_projection_ + n * hidden_, hidden_, rows.begin, rows.end,
          n_end - n, false, false,
          [&](int64_t e) {
            return rows.chunk->unprojected_h_grad + (e - rows.begin) * cell_ +
                   n;
          });
    });
  }

  // dz of packed rows as the first factor of a product.
  typename TransposedProduct<T>::Rows ZGradRows(const Rows& rows) const {
    typename TransposedProduct<T>::Rows of;
    of.begin = rows.begin;
    of.end = rows.end;
    const int64_t parts = shape_.pre_activations;
    of.stride = pairs_ ? parts * CellWords() : z_stride_;
    of.z_grad = (pairs_ ? rows.chunk->rounded_z_grad : rows.chunk->z_grad) +
                rows.first * of.stride;
    of.batch_row = batch_row_;
    of.batch = batch_;
    return of;
  }

  // The gradient of the previous h, from the dz of a step.
  void ToPreviousH(const Rows& rows, int64_t step, int64_t n) const {
    if (step == 0 && !args_.wants_h0_grad) return;
    typename TransposedProduct<T>::Rows of = ZGradRows(rows);
    of.target = batch_row_;
    of.to = args_.h0_grad.data;
    of.to_stride = hidden_;
    of.keep = args_.recurrent_dropout.data;
    to_h_.Multiply(of, packed_recurrent_, n);
  }

  // The gradient of x, columns from n on. A pass that adds to the x_grad of
  // another pass writes to x_grad_rows_ first.
  void ToX(const Rows& rows, int64_t n) const {
    if (!args_.weights.input) return PassToX(rows, n);
    typename TransposedProduct<T>::Rows of = ZGradRows(rows);
    of.target = args_.adds_to_x_grad ? nullptr : input_row_;
    of.to = args_.adds_to_x_grad ? x_grad_rows_ : args_.x_grad;
    of.to_stride = args_.x_stride;
    of.keep = args_.input_dropout.data;
    to_x_.Multiply(of, packed_input_, n);
  }

  // dx without input weights: dz of the gate that reads a column, or the sum
  // over the gates where all gates share the columns.
  void PassToX(const Rows& rows, int64_t n) const {
    const int64_t gate_stride = args_.config.x_gate_stride;
    for (int64_t e = rows.begin; e < rows.end; ++e) {
      T* x = args_.adds_to_x_grad
                 ? x_grad_rows_ + e * args_.x_stride
                 : args_.x_grad + input_row_[e] * args_.x_stride;
      for (int64_t u = n; u < Min(n + kBlock, input_); u += kL) {
        for (int p = 0; p < shape_.input; ++p) {
          T* to = x + Block(p) * gate_stride + u;
          const T* from = ZGrad(*rows.chunk, rows.InChunk(e), p) + u;
          const bool adds = p > 0 && gate_stride == 0;
          StoreN(LoadN(from, input_ - u) + (adds ? LoadN(to, input_ - u) : V{}),
                 to, input_ - u);
        }
      }
    }
  }

  void AddXGrad(int64_t begin, int64_t end) const {
    const int64_t gate_stride = args_.config.x_gate_stride;
    const int blocks =
        args_.weights.input || gate_stride == 0 ? 1 : shape_.input;
    for (int64_t e = begin; e < end; ++e) {
      for (int p = 0; p < blocks; ++p) {
        const int64_t at = blocks > 1 ? Block(p) * gate_stride : 0;
        const T* from = x_grad_rows_ + e * args_.x_stride + at;
        T* to = args_.x_grad + input_row_[e] * args_.x_stride + at;
        for (int64_t i = 0; i < input_; ++i) to[i] += from[i];
      }
    }
  }

  // Copies columns of x, h or m to panels. Items: kPanels columns of each.
  static int64_t PanelItems(const WeightGrad<T>& grad, int64_t width) {
    return grad.Sets() * Blocks(width, kPanels);
  }
  int64_t PanelItems() const {
    return PanelItems(input_grad_, input_) +
           PanelItems(recurrent_grad_, hidden_) +
           PanelItems(projection_grad_, cell_);
  }
  void Gather(const Rows& rows, int64_t item) const {
    const Chunk& chunk = *rows.chunk;
    if (item < PanelItems(input_grad_, input_)) {
      return Gather(rows, item, input_grad_, input_, chunk.x_panels,
                    args_.input_dropout.data, 0, [&](int64_t e) {
                      return args_.x + input_row_[e] * args_.x_stride;
                    });
    }
    item -= PanelItems(input_grad_, input_);
    if (item < PanelItems(recurrent_grad_, hidden_)) {
      return Gather(rows, item, recurrent_grad_, hidden_, chunk.h_panels,
                    args_.recurrent_dropout.data, shape_.first_recurrent,
                    [&](int64_t e) -> const T* {
                      return RestoresH()
                                 ? chunk.previous_h + rows.InChunk(e) * padded_
                                 : PreviousH(e);
                    });
    }
    item -= PanelItems(recurrent_grad_, hidden_);
    Gather(rows, item, projection_grad_, cell_, chunk.unprojected_h_panels,
           nullptr, 0, [&](int64_t e) -> const T* {
             return chunk.unprojected_h + rows.InChunk(e) * cell_;
           });
  }
  // `keep` has a set of multipliers for each gate. Set s is for gate first + s.
  template <class RowOf>
  void Gather(const Rows& rows, int64_t item, const WeightGrad<T>& grad,
              int64_t width, T* panels, const T* keep, int first,
              const RowOf& row_of) const {
    const int set = static_cast<int>(item / Blocks(width, kPanels));
    const int64_t begin = item % Blocks(width, kPanels) * kPanels;
    for (int64_t e = rows.begin; e < rows.end; ++e) {
      const T* kept =
          keep ? keep + (Block(first + set) * batch_ + batch_row_[e]) * width
               : nullptr;
      grad.panels().SetRow(grad.Set(panels, set), rows.InChunk(e), row_of(e),
                           kept, begin, Min(begin + kPanels, width));
    }
  }

  void GatherChunk(int64_t chunk, int64_t item) const {
    const Schedule::Steps steps = schedule_.StepsOf(chunk);
    for (int64_t step = steps.begin; step < steps.end; ++step) {
      Gather(RowsOf(step), item);
    }
  }

  // dW = x' dz, dR = h_prev' dz, dWp = m' dh.
  using Factors = WeightGradFactors<T>;
  Factors InputFactors(const Chunk& chunk, int64_t count) const {
    return {chunk.x_panels, chunk.z_grad, z_stride_, count};
  }
  Factors RecurrentFactors(const Chunk& chunk, int64_t count) const {
    return {chunk.h_panels, ZGrad(chunk, 0, shape_.first_recurrent), z_stride_,
            count};
  }
  Factors ProjectionFactors(const Chunk& chunk, int64_t count) const {
    return {chunk.unprojected_h_panels, chunk.h_grad, padded_hidden_, count};
  }

  // The products of a chunk without slices. The last items are dx = dz W'.
  int64_t ProductItems(int64_t chunk) const {
    const Rows rows = RowsOfChunk(chunk);
    const int64_t of_x_grad =
        args_.x_grad
            ? Blocks(rows.end - rows.begin, kRowChunk) * Blocks(input_, kBlock)
            : 0;
    return input_grad_.Items() + recurrent_grad_.Items() +
           projection_grad_.Items() + of_x_grad;
  }
  void Multiply(int64_t chunk, int64_t item, int thread) const {
    const Rows rows = RowsOfChunk(chunk);
    const int64_t count = rows.end - rows.begin;
    T* scratch = blocks_ + thread * WeightGrad<T>::kScratch;
    const auto run = [&](const WeightGrad<T>& grad, const Factors& factors) {
      if (item >= 0 && item < grad.Items()) {
        grad.Run(factors, chunk > 0, item, scratch);
      }
      item -= grad.Items();
    };
    run(input_grad_, InputFactors(*rows.chunk, count));
    run(recurrent_grad_, RecurrentFactors(*rows.chunk, count));
    run(projection_grad_, ProjectionFactors(*rows.chunk, count));
    if (item < 0) return;
    const int64_t e = rows.begin + item / Blocks(input_, kBlock) * kRowChunk;
    ToX(rows.From(e, Min(e + kRowChunk, rows.end)),
        item % Blocks(input_, kBlock) * kBlock);
  }

  // Writes the sums over all steps. Items: groups of units; with slices, also
  // rows of the weights.
  void Finish(int64_t item) {
    const int64_t groups = Blocks(padded_, group_);
    if (item >= groups) return WriteWeightGrad(item - groups);
    const int64_t n = item * group_;
    if (schedule_.slices() == 0) {
      if (steps_ > 0) ToPreviousH(RowsOf(0), 0, n);
      AddState(0, batch_, n, Min(n + group_, cell_));
    }
    for (int64_t u = n; u < Min(n + group_, cell_); u += kL) WriteSums(u);
  }

  // Where the state is h, adds its gradient to that of the initial h.
  void AddState(int64_t b, int64_t b_end, int64_t begin, int64_t end) const {
    if (!shape_.has_state || shape_.has_cell_state) return;
    for (; b < b_end; ++b) {
      for (int64_t u = begin; u < end; ++u) {
        args_.h0_grad.data[b * cell_ + u] += state_grad_[b * cell_ + u];
      }
    }
  }

  void WriteSums(int64_t u) const {
    const auto write = [&](const T* sums, T* to) {
      V total = Load(sums + u);
      for (int64_t k = 1; k < schedule_.slices(); ++k) {
        total = total + Load(sums + k * SumsSize() + u);
      }
      StoreN(total, to + u, cell_ - u);
    };
    const RnnWeights<T>& to = weights_grad_;
    for (int p = 0; p < shape_.pre_activations; ++p) {
      if (to.input_bias && p < shape_.input) {
        write(BiasSums(sums_, p), to.input_bias + Block(p) * cell_);
      }
      if (to.recurrent_bias && p >= shape_.first_recurrent) {
        write(BiasSums(sums_, p), to.recurrent_bias + Block(p) * cell_);
      }
      if (to.peephole[p]) write(PeepholeSums(sums_, p), to.peephole[p]);
    }
  }

  void WriteWeightGrad(int64_t row) const {
    const T* sums = weight_sums_;
    for (const WeightGrad<T>* grad :
         {&input_grad_, &recurrent_grad_, &projection_grad_}) {
      if (row >= 0 && row < grad->TotalItems()) {
        grad->WriteTotal(sums, WeightSumsSize(), schedule_.slices(), row);
      }
      row -= grad->TotalItems();
      sums += grad->SumsSize();
    }
  }

  T* packed_recurrent_ = nullptr;   // see TransposedProduct
  T* packed_input_ = nullptr;       // see TransposedProduct
  T* packed_projection_ = nullptr;  // [groups, P, vectors, lanes]
  T* x_grad_rows_ = nullptr;        // [V, x_stride]
  T* sums_ = nullptr;               // [slices, SumsSize()]
  T* weight_sums_ = nullptr;        // [slices, WeightSumsSize()]
  T* blocks_ = nullptr;             // [threads, WeightGrad::kScratch]
  // One for each thread, or two by turns: the step after a chunk is read from
  // the preceding chunk.
  std::vector<Chunk> chunks_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
