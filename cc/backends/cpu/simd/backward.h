// BackwardPass: the backward pass of a layer direction as one job, all but the
// cell's equations, which cell_backward.h adds. Compiled once for all cells.
// backward_schedule.h describes the order of the work.
//
// Notation: dv is the gradient with respect to v; m is the hidden state before
// the projection.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_

#include <algorithm>

#include "backends/cpu/simd/backward_state.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class BackwardPass : public BackwardState<T> {
 public:
  using BackwardState<T>::BackwardState;
  using typename BackwardState<T>::Element;
  using Schedule = BackwardSchedule;
  using Job = Schedule::Job;

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
        if (at.job == Job::kCells && shape_.reduces_rows) {
          return schedule_.row_sets();
        }
        return Blocks(
            Projected() && at.job == Job::kProject ? padded_hidden_ : padded_,
            group_);
      case Job::kGather:
        return weight_grads_.PanelItems();
      case Job::kProducts:
        return ProductItems(at.chunk);
      case Job::kFinish:
        return Blocks(padded_, group_) +
               (schedule_.slices() > 0 ? weight_grads_.TotalItems() : 0);
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
        if (at.job == Job::kCells && shape_.reduces_rows) {
          return RunRowSet(RowsOf(at.step), item, thread);
        }
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
  using Base = BackwardState<T>;
  using Base::args_, Base::batch_, Base::batch_row_, Base::BiasSums,
      Base::Block, Base::blocks_, Base::cell_, Base::CellWords, Base::chunks_,
      Base::ClearSums, Base::format_, Base::group_, Base::hidden_, Base::input_,
      Base::input_row_, Base::kBlock, Base::kL, Base::MultipliesXGrad,
      Base::NeedsHGrad, Base::packed_input_, Base::packed_projection_,
      Base::packed_recurrent_, Base::packed_rows_, Base::padded_,
      Base::padded_hidden_, Base::PeepholeSums, Base::previous_,
      Base::PreviousH, Base::Projected, Base::RestoresH, Base::RowsOf,
      Base::RowsOfChunk, Base::RowValues, Base::schedule_, Base::shape_,
      Base::SliceBegin, Base::state_grad_, Base::steps_, Base::sums_,
      Base::SumSets, Base::SumsSize, Base::to_h_, Base::to_x_, Base::UpstreamH,
      Base::weight_grads_, Base::weight_sums_, Base::weights_grad_,
      Base::x_grad_rows_, Base::z_stride_, Base::ZGrad;
  using typename Base::Chunk;
  using typename Base::Rows;
  using typename Base::V;
  static constexpr int64_t kCellRows = 8;

  ~BackwardPass() = default;

  // The cell's equations backward for packed rows [begin, end), one vector of
  // units: from the gradients of h and of the state to dz and the gradient of
  // the previous state.
  virtual void Cells(const Rows& rows, int64_t begin, int64_t end,
                     int64_t u) = 0;
  // The same of a cell that reduces rows, for all units of all rows. `values`
  // is the thread's memory, [kRowValues, padded].
  virtual void CellRows(const Rows& rows, T* values) = 0;
  // Writes the sums of such a cell for one vector of units.
  virtual void WriteRowSums(int64_t u) const = 0;

  // Writes the total of a sum over all steps, unless `to` is null.
  void WriteTotal(const T* sums, int64_t u, T* to) const {
    if (!to) return;
    V total = Load(sums + u);
    for (int64_t k = 1; k < SumSets(); ++k) {
      total = total + Load(sums + k * SumsSize() + u);
    }
    StoreN(total, to + u, cell_ - u);
  }

 private:
  static constexpr int64_t kRowChunk = 64 * kRows;  // rows of an item

  // Items: groups of units; blocks of columns of x.
  void Prepare(int64_t item) {
    const int64_t groups = Blocks(cell_, group_);
    if (item >= groups) {
      return to_x_.Pack((item - groups) * kBlock, packed_input_);
    }
    const int64_t n = item * group_;
    const int64_t end = Min(n + group_, padded_);
    for (int64_t k = 0; schedule_.slices() == 0 && k < SumSets(); ++k) {
      ClearSums(sums_ + k * SumsSize(), n, end);
    }
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
      PackBlock(PackedFrom{data, w.column_stride, w.row_stride, hidden_, cell_},
                n, Min(end, cell_), packed_projection_ + n * hidden_,
                WeightFormat::kElements);
    });
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
        if (rows.begin < rows.end) RunStepOfSlice(rows, step, thread);
      }
      weight_grads_.AddToSums(chunk.factors, GradientsOf(chunk, count), c > 0,
                              blocks_ + thread * WeightGrad<T>::kScratch,
                              weight_sums_ + slice * weight_grads_.SumsSize());
    }
    AddState(schedule_.SliceBegin(slice), schedule_.SliceBegin(slice + 1), 0,
             cell_);
  }

  // Fetches x and h of the step before. They lie too far away for the hardware
  // prefetcher.
  void PrefetchFactors(const Rows& rows) const {
    for (int64_t e = rows.begin; e < rows.end; ++e) {
      const int64_t before = previous_[e];
      if (before < 0) continue;
      PrefetchToRead(args_.x + input_row_[before] * args_.x_stride, input_);
      if (!RestoresH()) PrefetchToRead(PreviousH(before), hidden_);
    }
  }

  void RunStepOfSlice(const Rows& rows, int64_t step, int thread) {
    PrefetchFactors(rows);
    for (int64_t n = 0; Projected() && n < hidden_; n += group_) {
      LoadHGrad(rows, n);
    }
    if (shape_.reduces_rows) {
      CellRows(rows, RowValues(thread));
    } else {
      for (int64_t n = 0; n < cell_; n += group_) RunCells(rows, n);
    }
    for (int64_t n = 0; n < hidden_; n += group_) ToPreviousH(rows, step, n);
    for (int64_t k = 0; k < weight_grads_.PanelItems(); ++k) Gather(rows, k);
    for (int64_t n = 0; args_.x_grad && n < input_; n += kBlock) ToX(rows, n);
  }

  // One step without slices, for a group of units from n on.
  void RunStep(const Schedule::Phase& at, int64_t n) {
    if (at.job == Job::kProject) {
      if (at.step + 1 < steps_) {
        ToPreviousH(RowsOf(at.step + 1), at.step + 1, n);
      }
      if (shape_.reduces_rows) return;
      if (Projected()) return LoadHGrad(RowsOf(at.step), n);
    }
    RunCells(RowsOf(at.step), n);
  }

  // A cell that reduces rows, without slices. The sums of a set of rows are
  // added at the end, so they do not depend on the number of threads.
  void RunRowSet(const Rows& rows, int64_t set, int thread) {
    const int64_t begin = rows.begin + set * schedule_.set_rows();
    const int64_t end = Min(begin + schedule_.set_rows(), rows.end);
    if (begin >= end) return;
    Rows some = rows.From(begin, end);
    some.sums += set * SumsSize();
    CellRows(some, RowValues(thread));
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
          WeightColumns<T>{packed_projection_ + n * hidden_, hidden_},
          {rows.begin, rows.end, n_end - n},
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
    const bool rounds = RoundsFactors(format_);
    of.stride = rounds ? parts * CellWords() : z_stride_;
    of.z_grad = (rounds ? rows.chunk->rounded_z_grad : rows.chunk->z_grad) +
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

  // Copies columns of x, h and m to panels.
  void Gather(const Rows& rows, int64_t item) const {
    const Chunk& chunk = *rows.chunk;
    weight_grads_.Gather(
        {rows.begin, rows.end, rows.first}, item,
        [&](int64_t e) -> const T* {
          return RestoresH() ? chunk.previous_h + rows.InChunk(e) * padded_
                             : PreviousH(e);
        },
        [&](int64_t e) {
          return chunk.unprojected_h + rows.InChunk(e) * cell_;
        },
        chunk.factors);
  }
  void GatherChunk(int64_t chunk, int64_t item) const {
    const Schedule::Steps steps = schedule_.StepsOf(chunk);
    for (int64_t step = steps.begin; step < steps.end; ++step) {
      Gather(RowsOf(step), item);
    }
  }

  typename WeightGrads<T>::Gradients GradientsOf(const Chunk& chunk,
                                                 int64_t count) const {
    return {chunk.z_grad, z_stride_, chunk.h_grad, padded_hidden_, count};
  }

  // The products of a chunk without slices. The last items are dx = dz W'.
  int64_t ProductItems(int64_t chunk) const {
    const Rows rows = RowsOfChunk(chunk);
    const int64_t of_x_grad =
        args_.x_grad
            ? Blocks(rows.end - rows.begin, kRowChunk) * Blocks(input_, kBlock)
            : 0;
    return weight_grads_.Items() + of_x_grad;
  }
  void Multiply(int64_t chunk, int64_t item, int thread) const {
    const Rows rows = RowsOfChunk(chunk);
    if (item < weight_grads_.Items()) {
      return weight_grads_.Run(
          rows.chunk->factors, GradientsOf(*rows.chunk, rows.end - rows.begin),
          chunk > 0, item, blocks_ + thread * WeightGrad<T>::kScratch);
    }
    item -= weight_grads_.Items();
    const int64_t e = rows.begin + item / Blocks(input_, kBlock) * kRowChunk;
    ToX(rows.From(e, Min(e + kRowChunk, rows.end)),
        item % Blocks(input_, kBlock) * kBlock);
  }

  // Writes the sums over all steps. Items: groups of units; with slices, also
  // rows of the weights.
  void Finish(int64_t item) {
    const int64_t groups = Blocks(padded_, group_);
    if (item >= groups) {
      return weight_grads_.WriteTotals(weight_sums_, schedule_.slices(),
                                       item - groups);
    }
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
    if (shape_.reduces_rows) return WriteRowSums(u);
    const RnnWeights<T>& to = weights_grad_;
    for (int p = 0; p < shape_.pre_activations; ++p) {
      const int64_t at = Block(p) * cell_;
      if (to.input_bias && p < shape_.input) {
        WriteTotal(BiasSums(sums_, p), u, to.input_bias + at);
      }
      if (to.recurrent_bias && p >= shape_.first_recurrent) {
        WriteTotal(BiasSums(sums_, p), u, to.recurrent_bias + at);
      }
      WriteTotal(PeepholeSums(sums_, p), u, to.peephole[p]);
    }
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_H_
