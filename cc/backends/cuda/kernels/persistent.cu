// All steps of a layer in one launch. Each block computes some units. It keeps
// their recurrent weights in shared memory from the first step to the last. The
// blocks of a group synchronise once per step. Compiled with the macros of
// cell_step.h and block_group.h, and
//
//   TF_LSTM_OPS_TILES   tiles of kTileRows rows of weights in a block
#include "backends/cuda/kernels/block_group.h"
#include "backends/cuda/kernels/cell_step.h"
#include "backends/cuda/kernels/cooperation.h"
#include "backends/cuda/kernels/persistent_arguments.h"

namespace tf_lstm_ops::cuda {
namespace {

constexpr int kTiles = TF_LSTM_OPS_TILES;
constexpr int kWordElements = sizeof(Words) / sizeof(T);
constexpr int kPrefetch = 4;  // chunks that a warp loads before it multiplies

__device__ inline int Lane() { return threadIdx.x % kWarp; }
__device__ inline int Warp() { return threadIdx.x / kWarp; }
__device__ inline int Warps() { return blockDim.x / kWarp; }

// The rows of weights of a block, and their products with rows of the batch.
class Product {
 public:
  // `rows` is the number of rows of the batch. weight(row, k) returns a weight,
  // or 0 where row or k is too large.
  template <class Weight>
  __device__ Product(const GroupArguments<T>& group, int64_t rows,
                     SharedMemory memory, const Weight& weight)
      : stride_(group.stride),
        rows_(rows),
        chunks_(static_cast<int>(group.stride * sizeof(T) / kChunkBytes)),
        sums_(reinterpret_cast<WarpSums*>(memory)),
        weights_(memory + Warps() * sizeof(WarpSums) / sizeof(Words)) {
    // A lane reads only what it has written itself: no barrier is needed.
    for (int c = Warp(); c < chunks_; c += Warps()) {
      for (int m = 0; m < kTiles; ++m) {
        for (int half = 0; half < 2; ++half) {
          const int row = m * kTileRows + half * 8 + Lane() / 4;
          const int64_t first = FirstElement(c);
          *PackedWeights(c, m, half) = TensorCore<T>::Pack(
              [&](int k) { return weight(row, first + k); });
        }
      }
    }
  }

  // Multiplies with kColumns rows from row b on. Synchronises the block.
  __device__ void Multiply(const T* vectors, int64_t b) const {
    float products[kTiles][kColumns / 8][4] = {};
    for (int c = Warp(); c < chunks_; c += kPrefetch * Warps()) {
      Words loaded[kPrefetch][kColumns / 8];
#pragma unroll
      for (int i = 0; i < kPrefetch; ++i) {
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n) {
          loaded[i][n] =
              LoadVector(vectors, b + n * 8 + Lane() / 4, c + i * Warps());
        }
      }
#pragma unroll
      for (int i = 0; i < kPrefetch; ++i) {
        if (c + i * Warps() < chunks_) {
          MultiplyTiles(c + i * Warps(), loaded[i], products);
        }
      }
    }
    StoreWarpSums(products);
    __syncthreads();
  }

  // The product of a row of weights and row b + column of the last Multiply.
  __device__ C Sum(int row, int column) const {
    C sum = 0;
    for (int w = 0; w < Warps(); ++w) sum += sums_[w][row][column];
    return sum;
  }

 private:
  using WarpSums = WarpProducts<kTiles>;

  __device__ static int64_t FirstElement(int chunk) {
    return (int64_t{chunk} * 4 + Lane() % 4) * kWordElements;
  }
  __device__ Words* PackedWeights(int chunk, int tile, int half) const {
    return weights_ + ((chunk * kTiles + tile) * 2 + half) * kWarp + Lane();
  }

  __device__ Words LoadVector(const T* vectors, int64_t row, int chunk) const {
    Words words = {};
    if (row >= rows_ || chunk >= chunks_) return words;
    words = *reinterpret_cast<const Words*>(vectors + row * stride_ +
                                            FirstElement(chunk));
#pragma unroll
    for (uint32_t& word : words.word) word = TensorCore<T>::Prepare(word);
    return words;
  }

  __device__ void MultiplyTiles(
      int chunk, const Words (&vectors)[kColumns / 8],
      float (&products)[kTiles][kColumns / 8][4]) const {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const Words weights[2] = {*PackedWeights(chunk, m, 0),
                                *PackedWeights(chunk, m, 1)};
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        MultiplyChunk<T>(weights, vectors[n], products[m][n]);
      }
    }
  }

  __device__ void StoreWarpSums(
      const float (&products)[kTiles][kColumns / 8][4]) const {
    WarpSums& sums = sums_[Warp()];
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums[m * kTileRows + i / 2 * 8 + Lane() / 4]
              [n * 8 + Lane() % 4 * 2 + i % 2] = products[m][n][i];
        }
      }
    }
  }

  const int64_t stride_, rows_;
  const int chunks_;
  WarpSums* const sums_;
  Words* const weights_;
};

// The output elements that the threads of a block compute: those of its units
// and of its group's rows, kColumns rows at a time.
class BlockElements {
 public:
  __device__ BlockElements(const GroupArguments<T>& arguments,
                           const BlockGroup<T>& group, int64_t cell_size)
      : units_(static_cast<int>(arguments.units)),
        first_unit_(group.rank() * arguments.units),
        cell_size_(cell_size),
        first_row_(group.first_row()),
        rows_(group.rows()) {}

  // An element, and its position in the group: row of the group, column of
  // Product, unit of the block.
  struct Position {
    Element element;
    int64_t row;
    int unit, column;
    bool is_first;  // the first one of the thread in the step
  };

  // Calls f(Position) for each element of this thread in rows [b, b +
  // kColumns) of the group.
  template <class F>
  __device__ void ForEach(int64_t b, const F& f) const {
    for (int i = threadIdx.x; i < units_ * kColumns; i += blockDim.x) {
      const int column = i / units_, unit = i - column * units_;
      const Element element = ElementAt(b, unit, column);
      if (!element.exists) continue;
      f(Position{element, b + column, unit, column,
                 b == 0 && i == static_cast<int>(threadIdx.x)});
    }
  }
  // The first element of this thread in a step.
  __device__ Element First() const {
    const int column = threadIdx.x / units_;
    const int unit = threadIdx.x - column * units_;
    Element element = ElementAt(0, unit, column);
    element.exists = element.exists && column < kColumns;
    return element;
  }

 private:
  __device__ Element ElementAt(int64_t b, int unit, int column) const {
    const int64_t row = b + column, u = first_unit_ + unit;
    return {first_row_ + row, u, row < rows_ && u < cell_size_};
  }

  const int units_;
  const int64_t first_unit_, cell_size_, first_row_, rows_;
};

using Position = BlockElements::Position;

__device__ inline C Multiplier(const Multipliers<T>& dropout,
                               const Element& element) {
  return dropout.data
             ? Load(dropout.data, dropout.Index(0, element.b, element.u))
             : C(1);
}

// The shared memory behind the group's vectors.
__device__ inline SharedMemory ProductMemory(const GroupArguments<T>& group,
                                             SharedMemory memory) {
  return memory + group.vector_bytes / sizeof(Words);
}

}  // namespace

// Each thread prefetches its first element's inputs for the next step between
// arriving and waiting.
TF_LSTM_OPS_COOPERATIVE_KERNEL(forward_steps, ForwardSteps<T, C>) {
  using Step = CellStep<Cell>;
  TF_LSTM_OPS_SHARED_MEMORY(memory);
  const GroupArguments<T>& arguments = a.group;
  const int64_t steps = a.step.sequence.steps;
  const int64_t cell_size = a.step.cell.cell_size;
  const int units = static_cast<int>(arguments.units);
  BlockGroup<T> group(arguments, a.step.sequence.batch, memory);
  const auto weight = [&](int row, int64_t k) {  // row of [gates, units]
    const int64_t gate = row / units;
    const int64_t unit = group.rank() * arguments.units + row - gate * units;
    const bool exists =
        gate < a.step.cell.gates && unit < cell_size && k < cell_size;
    const int64_t column = gate * cell_size + unit;
    return exists ? arguments.weights[k * arguments.row_stride +
                                      column * arguments.column_stride]
                  : T{};
  };
  const Product product(arguments, group.rows(),
                        ProductMemory(arguments, memory), weight);
  const BlockElements elements(arguments, group, cell_size);
  const Element first = elements.First();
  typename Step::ForwardInput prefetched;
  if (first.exists && steps > 0) {
    prefetched = Step::LoadForward(a.step, 0, first);
  }
  for (int64_t s = 0; s < steps; ++s) {
    const T* previous = group.vectors(s);
    for (int64_t b = 0; b < group.rows(); b += kColumns) {
      product.Multiply(previous, b);
      elements.ForEach(b, [&](const Position& p) {
        const typename Step::ForwardInput in =
            p.is_first ? prefetched : Step::LoadForward(a.step, s, p.element);
        C h;
        const bool valid = Step::ComputeForward(
            a.step, s, p.element, in,
            [&](int block) {
              return product.Sum(block * units + p.unit, p.column);
            },
            &h);
        if (s + 1 == steps) return;
        const C multiplier = Multiplier(arguments.dropout, p.element);
        group.Put(s + 1, p.row, p.element.u,
                  valid ? Number<T>::Store(h * multiplier)
                        : previous[p.row * arguments.stride + p.element.u]);
      });
      __syncthreads();
    }
    if (s + 1 == steps) break;
    group.Arrive();
    if (first.exists) prefetched = Step::LoadForward(a.step, s + 1, first);
    group.Wait();
  }
}

// The vectors that the blocks exchange are the gradients of the
// pre-activations; a row of weights belongs to a unit of h.
TF_LSTM_OPS_COOPERATIVE_KERNEL(backward_steps, BackwardSteps<T, C>) {
  using Step = CellStep<Cell>;
  TF_LSTM_OPS_SHARED_MEMORY(memory);
  const GroupArguments<T>& arguments = a.group;
  const int64_t steps = a.step.sequence.steps;
  const int64_t cell_size = a.step.cell.cell_size;
  const int64_t width = a.step.cell.gates * cell_size;
  BlockGroup<T> group(arguments, a.step.sequence.batch, memory);
  const auto weight = [&](int row, int64_t k) {  // row of [units]
    const int64_t unit = group.rank() * arguments.units + row;
    const bool exists = row < arguments.units && unit < cell_size && k < width;
    return exists ? arguments.weights[unit * arguments.row_stride +
                                      k * arguments.column_stride]
                  : T{};
  };
  const Product product(arguments, group.rows(),
                        ProductMemory(arguments, memory), weight);
  const BlockElements elements(arguments, group, cell_size);
  const Element first = elements.First();
  const auto recurrent_grad = [&](const Position& p) {
    return Multiplier(arguments.dropout, p.element) *
           product.Sum(p.unit, p.column);
  };
  typename Step::BackwardInput prefetched;
  if (first.exists && steps > 0) {
    prefetched = Step::LoadBackward(a.step, steps - 1, first);
  }
  const bool wants_h0_grad = a.wants_h0_grad;
  for (int64_t s = steps - 1; s >= 0; --s) {
    const bool has_next = s + 1 < steps;
    for (int64_t b = 0; b < group.rows(); b += kColumns) {
      if (has_next) product.Multiply(group.vectors(s + 1), b);
      elements.ForEach(b, [&](const Position& p) {
        const typename Step::BackwardInput in =
            p.is_first ? prefetched : Step::LoadBackward(a.step, s, p.element);
        Step::ComputeBackward(a.step, p.element, in,
                              has_next ? recurrent_grad(p) : C(0),
                              [&](int64_t k, T value) {
                                if (s > 0 || wants_h0_grad) {
                                  group.Put(s, p.row, k, value);
                                }
                              });
      });
      __syncthreads();
    }
    if (s == 0 && !wants_h0_grad) return;
    group.Arrive();
    if (first.exists && s > 0) {
      prefetched = Step::LoadBackward(a.step, s - 1, first);
    }
    group.Wait();
  }
  for (int64_t b = 0; b < group.rows() && steps > 0; b += kColumns) {
    product.Multiply(group.vectors(0), b);
    elements.ForEach(b, [&](const Position& p) {
      a.step.next_h_grad[p.element.b * cell_size + p.element.u] +=
          recurrent_grad(p);
    });
    __syncthreads();
  }
}

}  // namespace tf_lstm_ops::cuda
