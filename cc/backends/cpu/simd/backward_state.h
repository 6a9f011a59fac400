// BackwardState: the arguments and the memory of a backward pass.
//
// Notation: dv is the gradient with respect to v; m is the hidden state before
// the projection.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STATE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STATE_H_

#include <algorithm>
#include <vector>

#include "backends/cpu/engine.h"
#include "backends/cpu/simd/backward_schedule.h"
#include "backends/cpu/simd/cells.h"
#include "backends/cpu/simd/gemm.h"
#include "backends/cpu/simd/scratch.h"
#include "backends/cpu/simd/transposed_product.h"
#include "backends/cpu/simd/weight_grads.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
class BackwardState {
 public:
  using Element = T;

  BackwardState(const EngineBackward<T>& args, const CellShape& shape,
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
        format_(FormatOf(kCanRound && args.config.bfloat16)),
        z_stride_(RoundUpToLanes<T>(shape.pre_activations * cell_) + kL),
        schedule_(batch_, steps_, Projected() || shape.reduces_rows,
                  WeightBytes(), shape.pre_activations * cell_ * kBytes),
        group_(Group(threads)),
        to_x_({input_, cell_, 0, shape.input, args.config.gate_order},
              args.weights.input, kBlock, format_),
        to_h_({hidden_, cell_, shape.first_recurrent, shape.recurrent,
               args.config.gate_order},
              args.weights.recurrent, Min(group_, kBlock), format_),
        weight_grads_(args, shape, schedule_.chunk_rows(), format_),
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
    sums_ = scratch->Take(SumSets() * SumsSize());
    row_values_ = scratch->Take(threads * RowValuesSize());
    weight_sums_ = scratch->Take(schedule_.slices() * weight_grads_.SumsSize());
    blocks_ = scratch->Take(threads * WeightGrad<T>::kScratch);
    for (int k = 0; k < (schedule_.slices() > 0 ? threads : 2); ++k) {
      chunks_[k] = PlaceChunk(scratch);
    }
  }

 protected:
  using V = VecT<T>;
  static constexpr int kL = kLanes<T>;
  static constexpr int64_t kBlock = kColumns * kL;  // columns of a product
  static constexpr int64_t kBytes = sizeof(T);
  static constexpr bool kCanRound = kDotsPairs && std::is_same_v<T, float>;

  // What is kept of the packed rows of a chunk, by the row's number in it.
  struct Chunk {
    T* z_grad;              // [., parts, H], rows z_stride_ apart
    T* rounded_z_grad;      // [., parts, H / 2], of pairs
    T* previous_h;          // [., P], where h is restored
    T* h_grad;              // [., P], with a projection
    T* unprojected_h;       // m, [., H], with a projection
    T* unprojected_h_grad;  // dm, [., H], with a projection
    typename WeightGrads<T>::Factors factors;
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

  ~BackwardState() = default;

  bool Projected() const { return args_.config.projected(); }
  // Without a projection h = o * co, computed again where h is not given.
  bool RestoresH() const { return !args_.h && weights_grad_.recurrent; }
  // Whether a product reads dz.
  bool KeepsZGrad() const {
    return NeedsHGrad() || weights_grad_.input || weights_grad_.recurrent ||
           args_.x_grad;
  }

  int64_t CellWords() const { return Words(cell_, format_); }

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

  // Stores dz of packed row e, pre-activation `part`, in the types that the
  // products read.
  TF_LSTM_OPS_INLINE void StorePreActivationGrad(const Rows& rows, int64_t e,
                                                 int part, int64_t u,
                                                 V z) const {
    const int64_t width = cell_ - u, row = rows.InChunk(e);
    if (KeepsZGrad()) StoreN(z, ZGrad(*rows.chunk, row, part) + u, width);
    if constexpr (kCanRound) {
      if (RoundsFactors(format_)) {
        StorePairs(z, RoundedZGrad(*rows.chunk, row, part) + u / 2, width);
      }
    }
  }

  const T* PreviousH(int64_t e) const {
    return previous_[e] < 0
               ? args_.h0.data + batch_row_[e] * hidden_
               : args_.h + output_row_[previous_[e]] * args_.h_stride;
  }

  // Sums over all steps, of dz and of dz times the state that a peephole reads:
  // [pre-activations, padded H] each. RowBackward uses them otherwise.
  T* BiasSums(T* sums, int part) const { return sums + part * padded_; }
  T* PeepholeSums(T* sums, int part) const {
    return sums + (shape_.pre_activations + part) * padded_;
  }

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

  // The number of sets of sums over rows, which are added at the end.
  int64_t SumSets() const {
    if (schedule_.slices() > 0) return schedule_.slices();
    return shape_.reduces_rows ? Max(schedule_.row_sets(), 1) : 1;
  }
  // Values of a row for which a cell that reduces rows has memory.
  static constexpr int kRowValues = 10;
  int64_t RowValuesSize() const {
    return shape_.reduces_rows ? kRowValues * padded_ : 0;
  }
  T* RowValues(int thread) const {
    return row_values_ + thread * RowValuesSize();
  }

  // Size of a set of sums.
  int64_t SumsSize() const { return 2 * shape_.pre_activations * padded_; }

  Chunk PlaceChunk(Scratch<T>* scratch) const {
    const int64_t rows = schedule_.chunk_rows();
    const int64_t parts = shape_.pre_activations;
    Chunk chunk;
    chunk.z_grad = scratch->Take(KeepsZGrad() ? rows * z_stride_ : 0);
    chunk.rounded_z_grad =
        scratch->Take(RoundsFactors(format_) ? rows * parts * CellWords() : 0);
    chunk.previous_h = scratch->Take(RestoresH() ? rows * padded_ : 0);
    chunk.h_grad = scratch->Take(Projected() ? rows * padded_hidden_ : 0);
    chunk.unprojected_h = scratch->Take(Projected() ? rows * cell_ : 0);
    chunk.unprojected_h_grad =
        scratch->Take(Projected() ? schedule_.step_rows() * cell_ : 0);
    chunk.factors = weight_grads_.Place(scratch);
    return chunk;
  }
  // Without slices: the packed rows of a chunk, and of a step.
  Rows RowsOfChunk(int64_t chunk) const {
    const BackwardSchedule::Steps steps = schedule_.StepsOf(chunk);
    return {begin_[steps.begin], begin_[steps.end], 0, &chunks_[chunk % 2],
            sums_};
  }
  Rows RowsOf(int64_t step) const {
    return RowsOfChunk(schedule_.ChunkOf(step))
        .From(begin_[step], begin_[step + 1]);
  }

  void ClearSums(T* sums, int64_t begin, int64_t end) const {
    for (int k = 0; k < 2 * shape_.pre_activations; ++k) {
      std::fill(sums + k * padded_ + begin, sums + k * padded_ + end, T(0));
    }
  }

  // The first packed row of a step that belongs to the slice or a later one.
  int64_t SliceBegin(int64_t slice, int64_t step) const {
    const int64_t row = schedule_.SliceBegin(slice);
    const int64_t begin = begin_[step], end = begin_[step + 1];
    if (end - begin == batch_) return begin + row;
    return std::lower_bound(batch_row_ + begin, batch_row_ + end, row) -
           batch_row_;
  }

  const EngineBackward<T>& args_;
  const CellShape shape_;
  const RnnWeights<T>& weights_grad_;
  const int64_t input_, cell_, hidden_, padded_, padded_hidden_;
  const int64_t batch_, packed_rows_, steps_;
  const WeightFormat format_;  // of both factors of products
  // A row of dz. Without the vector behind it, rows would often be a power of
  // two apart, and a column would occupy few sets of the cache.
  const int64_t z_stride_;
  const BackwardSchedule schedule_;
  const int64_t group_;  // units in an item of a step
  const TransposedProduct<T> to_x_, to_h_;
  const WeightGrads<T> weight_grads_;
  const int64_t* begin_;
  const int64_t* batch_row_;
  const int64_t* input_row_;
  const int64_t* output_row_;
  const int64_t* previous_;
  T* state_grad_ = nullptr;  // [B, H]
  T* co_ = nullptr;  // [B, H], of the next packed row of each row of the batch
  T* packed_recurrent_ = nullptr;   // see TransposedProduct
  T* packed_input_ = nullptr;       // see TransposedProduct
  T* packed_projection_ = nullptr;  // [groups, P, vectors, lanes]
  T* x_grad_rows_ = nullptr;        // [V, x_stride]
  T* sums_ = nullptr;               // [SumSets(), SumsSize()]
  T* row_values_ = nullptr;         // [threads, kRowValues, padded H]
  T* weight_sums_ = nullptr;        // [slices, weight_grads_.SumsSize()]
  T* blocks_ = nullptr;             // [threads, WeightGrad::kScratch]
  // One for each thread, or two by turns: the step after a chunk is read from
  // the preceding chunk.
  std::vector<Chunk> chunks_;
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_STATE_H_
