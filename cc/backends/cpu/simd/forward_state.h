// ForwardState: the arguments and the memory of a forward pass.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STATE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STATE_H_

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/forward_schedule.h"
#include "backends/cpu/simd/forward_weights.h"
#include "backends/cpu/simd/scratch.h"
#include "backends/cpu/simd/single_step.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class ForwardState {
 public:
  using Element = T;
  using Schedule = ForwardSchedule;
  using Job = Schedule::Job;
  using Regime = Schedule::Regime;

  // With `keeps_weights` the packed weights are outside of the scratch memory.
  // With `filled` they have been packed before.
  ForwardState(const EngineForward<T>& args, const CellShape& shape,
               int threads, bool keeps_weights, bool filled)
      : args_(args),
        shape_(shape),
        keeps_weights_(keeps_weights),
        filled_(filled),
        input_(args.config.input_size),
        cell_(args.config.cell_size),
        hidden_(args.config.hidden_size),
        padded_(RoundUpToLanes<T>(cell_)),
        batch_(args.packed->batch),
        packed_rows_(args.packed->size()),
        weights_(args, shape),
        once_(args),
        schedule_(Problem(), threads),
        begin_(args.packed->begin.data()),
        batch_row_(args.packed->batch_row.data()),
        input_row_(args.packed->input_row.data()),
        output_row_(args.packed->output_row.data()),
        previous_(args.packed->previous.data()),
        ordinal_(args.packed->ordinal.data()) {}

  void PlaceWeights(Scratch<T>* memory) {
    if (Packs()) weights_.Place(memory);
  }

  // Assigns the pieces of scratch memory for `threads` threads.
  void Place(Scratch<T>* scratch, int threads) {
    if (!keeps_weights_) PlaceWeights(scratch);
    if (!Packs()) once_.Place(scratch, threads);
    z_ = scratch->Take(schedule_.MaxChunkRows() * ZParts() * padded_);
    slice_z_ = scratch->Take(threads * SliceZSize());
    state_ = args_.final_c.data ? args_.final_c.data
             : shape_.has_state ? scratch->Take(batch_ * cell_)
                                : nullptr;
    unprojected_h_ = scratch->Take(Projected() ? batch_ * cell_ : 0);
    effective_h_ =
        scratch->Take(2 * EffectiveHSets() * batch_ * FactorWords(hidden_));
    rounded_x_ =
        scratch->Take(RoundsX() ? packed_rows_ * FactorWords(input_) : 0);
    dropped_x_ = scratch->Take(threads * DroppedXSize());
  }

 protected:
  using V = VecT<T>;
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kRowBlock = Schedule::kRowBlock;

  ~ForwardState() = default;

  bool Projected() const { return args_.config.projected(); }
  bool Packs() const { return schedule_.regime() != Regime::kOnce; }
  bool DropsX() const { return args_.input_dropout.data != nullptr; }

  // Pre-activations in a row of z. A cell that reduces rows stores the products
  // with h there too.
  int64_t ZParts() const {
    return shape_.reduces_rows ? shape_.pre_activations : shape_.input;
  }
  // With slices, a cell that reduces rows has a z for each thread.
  int64_t SliceZSize() const {
    return shape_.reduces_rows ? schedule_.slice_rows() * ZParts() * padded_
                               : 0;
  }
  T* SliceZ(int thread) const {
    return shape_.reduces_rows ? slice_z_ + thread * SliceZSize() : nullptr;
  }

  // Whether x and h are rounded to pairs of bfloat16.
  bool Rounds() const { return RoundsFactors(weights_.format()); }
  // Words of a row of `width` elements that is multiplied with packed weights.
  int64_t FactorWords(int64_t width) const {
    return Rounds() ? Words(width, weights_.format()) : width;
  }

  // Whether x is rounded before the steps. With dropout, DropX rounds it.
  bool RoundsX() const { return Rounds() && args_.weights.input && !DropsX(); }

  // Number of copies of h after dropout or rounding; 0: products read h itself.
  int64_t EffectiveHSets() const {
    return args_.recurrent_dropout.data ? shape_.recurrent : Rounds() ? 1 : 0;
  }

  // The memory of a thread for x after dropout.
  int64_t DroppedXSize() const {
    return DropsX() ? kRowBlock * shape_.input * FactorWords(input_) : 0;
  }
  T* DroppedX(int thread) const {
    return DropsX() ? dropped_x_ + thread * DroppedXSize() : nullptr;
  }

  int Block(int part) const { return args_.config.gate_order.block[part]; }

  // The bias of a pre-activation.
  V Bias(int part, int64_t u) const {
    const int64_t at = Block(part) * cell_ + u;
    const auto load = [&](const T* bias, bool has_part) {
      return bias && has_part ? LoadN(bias + at, cell_ - u) : V{};
    };
    V bias = load(args_.weights.input_bias, part < shape_.input) +
             load(args_.weights.recurrent_bias, part >= shape_.first_recurrent);
    if (shape_.has_forget_bias && part == kGateF) {
      bias = bias + static_cast<T>(args_.config.forget_bias);
    }
    return bias;
  }

  // Stores a vector as elements u, u + 1, ... of a row of a product.
  void StoreFactor(V v, T* row, int64_t u, int64_t width) const {
    if constexpr (kDotsPairs && std::is_same_v<T, float>) {
      if (Rounds()) {
        StorePairs(v, reinterpret_cast<BFloat16Pair*>(row) + u / 2, width - u);
        return;
      }
    }
    StoreN(v, row + u, width - u);
  }

  T* H(int64_t e) const { return args_.h + output_row_[e] * args_.h_stride; }

  const T* PreviousH(int64_t e) const {
    return previous_[e] < 0 ? args_.h0.data + batch_row_[e] * hidden_
                            : H(previous_[e]);
  }

  // h of a row of the batch after `ordinal` valid steps, after dropout or
  // rounding. Two buffers alternate, since other items still read the preceding
  // step's h.
  T* EffectiveH(int64_t row, int64_t ordinal, int p) const {
    return effective_h_ +
           (((ordinal & 1) * EffectiveHSets() + p) * batch_ + row) *
               FactorWords(hidden_);
  }

  void StoreEffectiveH(V h, int64_t row, int64_t ordinal, int64_t u) {
    for (int p = 0; p < EffectiveHSets(); ++p) {
      V effective = h;
      if (args_.recurrent_dropout.data) {
        const T* keep =
            args_.recurrent_dropout.data +
            (Block(shape_.first_recurrent + p) * batch_ + row) * hidden_ + u;
        effective = effective * LoadN(keep, hidden_ - u);
      }
      StoreFactor(effective, EffectiveH(row, ordinal, p), u, hidden_);
    }
  }

  const T* X(int64_t e) const {
    return args_.x + input_row_[e] * args_.x_stride;
  }

  void LoadState(int64_t u) {
    const int64_t width = cell_ - u;
    const T* initial = shape_.has_cell_state ? args_.c0.data : args_.h0.data;
    for (int64_t b = 0; b < batch_; ++b) {
      const int64_t at = b * cell_ + u;
      if (shape_.has_state) {
        StoreN(LoadN(initial + at, width), state_ + at, width);
      }
      if (EffectiveHSets() > 0 && u < hidden_) {
        StoreEffectiveH(LoadN(args_.h0.data + b * hidden_ + u, hidden_ - u), b,
                        0, u);
      }
    }
  }

  // Copies a row of x, multiplied by `keep` unless that is null, and rounded if
  // Rounds().
  void RoundRow(const T* x, const T* keep, T* to) const {
    for (int64_t i = 0; i < input_; i += kL) {
      V v = LoadN(x + i, input_ - i);
      if (keep) v = v * LoadN(keep + i, input_ - i);
      StoreFactor(v, to, i, input_);
    }
  }

  const EngineForward<T>& args_;
  const CellShape shape_;
  const bool keeps_weights_, filled_;
  const int64_t input_, cell_, hidden_, padded_, batch_, packed_rows_;
  ForwardWeights<T> weights_;
  SingleStep<T> once_;
  const ForwardSchedule schedule_;
  // The lists of PackedSequence.
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  const int64_t* ordinal_;
  T* z_ = nullptr;        // [., ZParts(), padded] of a chunk; not with slices
  T* slice_z_ = nullptr;  // [threads, slice rows, ZParts(), padded]
  T* state_ = nullptr;    // [B, H]
  T* unprojected_h_ = nullptr;  // [B, H]
  T* effective_h_ = nullptr;    // [2, 1 or recurrent parts, B, P]
  T* rounded_x_ = nullptr;      // [V, I]
  T* dropped_x_ = nullptr;      // [threads, kRowBlock, input parts, I]

 private:
  Schedule::Problem Problem() const {
    const bool packs = keeps_weights_ || shape_.first_recurrent != 0 ||
                       shape_.recurrent != shape_.input ||
                       !SingleStep<T>::Serves(args_);
    return {*args_.packed,
            !packs,
            Projected(),
            shape_.reduces_rows,
            padded_,
            hidden_,
            kL,
            shape_.recurrent,
            ZParts() * padded_ * static_cast<int64_t>(sizeof(T))};
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_FORWARD_STATE_H_
