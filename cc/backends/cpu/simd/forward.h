// ForwardPass: the forward pass of a layer direction as one job, all but the
// cell's equations and the products before them, which cell_forward.h adds.
// Compiled once for all cells. forward_schedule.h describes the order of the
// work.
//
// Work is divided such that an item computes all gates of its units. So the
// cell's equations are applied to the accumulators of the recurrent product
// while these are in registers.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_

#include "backends/cpu/simd/forward_state.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class ForwardPass : public ForwardState<T> {
 public:
  using ForwardState<T>::ForwardState;
  using typename ForwardState<T>::Element;
  using typename ForwardState<T>::Job;
  using typename ForwardState<T>::Schedule;

  int64_t Phases() const { return schedule_.Phases(); }
  int64_t Items(int64_t phase) const {
    if (phase == 0 && !Packs()) return once_.Items();
    return schedule_.Items(phase);
  }

  void Run(int64_t phase, int64_t item, int thread) {
    const typename Schedule::Phase at = schedule_.At(phase);
    switch (at.job) {
      case Job::kPrepare:
        return Packs() ? Prepare(item) : once_.Run(item, thread);
      case Job::kSlices:
        return RunSlice(item, thread);
      case Job::kCells:
        return RunStep(at.step, item, thread, phase % 2 == 1);
      case Job::kRows: {
        const int64_t e = begin_[at.step] + item;
        return FinishRows({e, e + 1, ZOfStep(at.step) + item * ZRow()});
      }
      case Job::kProject:
        return ProjectOutput(begin_[at.step], begin_[at.step + 1],
                             UnitsOf(item, hidden_));
    }
  }

 protected:
  using Base = ForwardState<T>;
  using Base::args_, Base::batch_, Base::batch_row_, Base::begin_, Base::Bias,
      Base::Block, Base::cell_, Base::DroppedX, Base::EffectiveHSets,
      Base::FactorWords, Base::filled_, Base::H, Base::hidden_, Base::input_,
      Base::kL, Base::kRowBlock, Base::LoadState, Base::once_, Base::ordinal_,
      Base::packed_rows_, Base::Packs, Base::padded_, Base::Projected,
      Base::RoundRow, Base::rounded_x_, Base::RoundsX, Base::schedule_,
      Base::shape_, Base::SliceZ, Base::StoreEffectiveH, Base::unprojected_h_,
      Base::weights_, Base::X, Base::z_, Base::ZParts;
  using typename Base::V;

  // Packed rows [begin, end) and their z, [end - begin, ZParts(), padded], or
  // null.
  struct Rows {
    int64_t begin, end;
    T* z;
  };
  struct Units {
    int64_t begin, end;
  };

  ~ForwardPass() = default;

  // z = x W + bias. With dropout x is `dropped_x`.
  virtual void ProjectUnits(const Rows& range, const Units& units,
                            const T* dropped_x) = 0;
  // One step: z + h R, then the cell's equations. If range.z is null, z = x W +
  // bias is computed first. With `reverse` the last units are first. With
  // Regime::kOnce z already contains h R. A cell that reduces rows only stores
  // h R in z.
  virtual void Step(const Rows& range, const Units& units, bool reverse,
                    const T* dropped_x) = 0;
  // The equations of a cell that reduces rows, from the products in z.
  virtual void FinishRows(const Rows& range) = 0;

 private:
  Units UnitsOf(int64_t item, int64_t end) const {
    const int64_t begin = item * schedule_.group();
    return {begin, Min(begin + schedule_.group(), end)};
  }

  // z of packed row e.
  T* Z(const Rows& rows, int64_t e, int part, int64_t u) const {
    return rows.z + (e - rows.begin) * ZRow() + part * padded_ + u;
  }
  int64_t ZRow() const { return ZParts() * padded_; }
  T* ZOfStep(int64_t step) const {
    return z_ + schedule_.InChunk(step) * ZRow();
  }

  void Prepare(int64_t item) {
    const Units units = UnitsOf(item, padded_);
    if (!filled_) weights_.Pack(units.begin, units.end);
    for (int64_t u = units.begin; u < units.end; u += kL) LoadState(u);
    if (RoundsX()) RoundX(item);
  }

  // All steps of a slice of the batch.
  void RunSlice(int64_t slice, int thread) {
    T* dropped_x = DroppedX(thread);
    for (int64_t step = 0; step < args_.packed->steps; ++step) {
      const Rows range = {schedule_.SliceBegin(slice, step),
                          schedule_.SliceBegin(slice + 1, step),
                          SliceZ(thread)};
      if (range.begin == range.end) continue;
      if (dropped_x) DropX(range.begin, range.end, dropped_x);
      if (range.z) ProjectUnits(range, {0, padded_}, dropped_x);
      Step(range, {0, padded_}, false, dropped_x);
      if (range.z) FinishRows(range);
      if (Projected()) ProjectOutput(range.begin, range.end, {0, hidden_});
    }
  }

  // A step of an item's units. Only this item reads and writes their z. The
  // units and the items of a phase have the same direction; see thread_team.h.
  void RunStep(int64_t step, int64_t item, int thread, bool reverse) {
    const Units units = UnitsOf(item, padded_);
    const Rows range = {begin_[step], begin_[step + 1], ZOfStep(step)};
    if (!Packs()) {
      MultiplyOnce(units, thread);
    } else if (schedule_.BeginsChunk(step)) {
      ProjectInput({range.begin, schedule_.ChunkEnd(step), range.z}, units,
                   DroppedX(thread));
    }
    Step(range, units, reverse, nullptr);
  }

  // Rounds an item's share of the packed rows of x to pairs.
  void RoundX(int64_t item) {
    const int64_t share = Blocks(packed_rows_, Items(0));
    const int64_t end = Min((item + 1) * share, packed_rows_);
    for (int64_t e = item * share; e < end; ++e) {
      RoundRow(X(e), nullptr, rounded_x_ + e * FactorWords(input_));
    }
  }

  // z = x W + bias.
  void ProjectInput(const Rows& all, const Units& units, T* dropped_x) {
    // With dropout, a block of rows of x serves all units.
    const int64_t block = dropped_x ? kRowBlock : all.end - all.begin;
    for (int64_t e = all.begin; e < all.end; e += block) {
      const Rows some = {e, Min(e + block, all.end), Z(all, e, 0, 0)};
      if (dropped_x) DropX(some.begin, some.end, dropped_x);
      ProjectUnits(some, units, dropped_x);
    }
  }

  // z = x W + h R + bias of the only step.
  void MultiplyOnce(const Units& units, int thread) {
    const Rows all = {0, packed_rows_, z_};
    for (int64_t u = units.begin; u < units.end; u += kL) {
      LoadState(u);
      for (int p = 0; p < shape_.input; ++p) {
        const V bias = Bias(p, u);
        for (int64_t e = 0; e < packed_rows_; ++e) Store(bias, Z(all, e, p, u));
      }
    }
    once_.Add(units.begin, units.end, thread,
              [&](int64_t e, int p, int64_t u) { return Z(all, e, p, u); });
  }

  // h = m Wp of packed rows [begin, end).
  void ProjectOutput(int64_t begin, int64_t end, const Units& units) {
    for (int64_t u = units.begin; u < units.end; u += kL) {
      MultiplyBlock<1>(
          [&](int64_t e) { return unprojected_h_ + batch_row_[e] * cell_; },
          WeightColumns<T>{weights_.projection(u), cell_},
          {begin, end, hidden_ - u}, [&](int64_t e) { return H(e) + u; });
      for (int64_t e = begin; EffectiveHSets() > 0 && e < end; ++e) {
        StoreEffectiveH(LoadN(H(e) + u, hidden_ - u), batch_row_[e],
                        ordinal_[e] + 1, u);
      }
    }
  }

  // x of packed rows [begin, end) after dropout: [end - begin, gates, I].
  void DropX(int64_t begin, int64_t end, T* to) const {
    for (int64_t e = begin; e < end; ++e) {
      for (int p = 0; p < shape_.input; ++p, to += FactorWords(input_)) {
        RoundRow(X(e),
                 args_.input_dropout.data +
                     (Block(p) * batch_ + batch_row_[e]) * input_,
                 to);
      }
    }
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_H_
