// All steps of a layer in one launch. A block has some units: it keeps their
// recurrent weights in shared memory from the first step to the last, and after
// each step all blocks that share the layer wait for each other once. The macros
// of cell_passes.h and exchange.h, and
//
//   TF_LSTM_OPS_TILES   of kTileRows rows of weights in a block
#include "backends/cuda/kernels/cell_passes.h"
#include "backends/cuda/kernels/cooperation.h"
#include "backends/cuda/kernels/exchange.h"
#include "backends/cuda/kernels/persistent_arguments.h"

namespace tf_lstm_ops::cuda {
namespace {

constexpr int kTiles = TF_LSTM_OPS_TILES;
constexpr int kNumbers = sizeof(Words) / sizeof(T);
constexpr int kAhead = 4;  // chunks that are on their way at a time

__device__ inline int Lane() { return threadIdx.x % kWarp; }
__device__ inline int Warp() { return threadIdx.x / kWarp; }
__device__ inline int Warps() { return blockDim.x / kWarp; }

// The rows of weights of a block, and their products with rows of the batch.
class Product {
 public:
  // With so many rows. at(row, k): a weight, 0 behind the last one.
  template <class At>
  __device__ Product(const Persistence<T>& shared, int64_t rows,
                     SharedMemory memory, const At& at)
      : stride_(shared.stride),
        rows_(rows),
        chunks_(static_cast<int>(shared.stride * sizeof(T) / kChunkBytes)),
        sums_(reinterpret_cast<WarpSums*>(memory)),
        weights_(memory + Warps() * sizeof(WarpSums) / sizeof(Words)) {
    // A lane reads what it writes here itself.
    for (int c = Warp(); c < chunks_; c += Warps()) {
      for (int m = 0; m < kTiles; ++m) {
        for (int half = 0; half < 2; ++half) {
          const int row = m * kTileRows + half * 8 + Lane() / 4;
          const int64_t first = FirstNumber(c);
          *Weight(c, m, half) =
              TensorCore<T>::Pack([&](int k) { return at(row, first + k); });
        }
      }
    }
  }

  // With kColumns rows, from row b on. The block waits.
  __device__ void Multiply(const T* vectors, int64_t b) const {
    float products[kTiles][kColumns / 8][4] = {};
    for (int c = Warp(); c < chunks_; c += kAhead * Warps()) {
      Words some[kAhead][kColumns / 8];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n) {
          some[i][n] = Vector(vectors, b + n * 8 + Lane() / 4, c + i * Warps());
        }
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (c + i * Warps() < chunks_) {
          MultiplyTiles(c + i * Warps(), some[i], products);
        }
      }
    }
    Write(products);
    __syncthreads();
  }

  // The product of a row of weights and a row after b.
  __device__ C Sum(int row, int column) const {
    C sum = 0;
    for (int w = 0; w < Warps(); ++w) sum += sums_[w][row][column];
    return sum;
  }

 private:
  using WarpSums = WarpProducts<kTiles>;

  __device__ static int64_t FirstNumber(int chunk) {
    return (int64_t{chunk} * 4 + Lane() % 4) * kNumbers;
  }
  __device__ Words* Weight(int chunk, int tile, int half) const {
    return weights_ + ((chunk * kTiles + tile) * 2 + half) * kWarp + Lane();
  }

  __device__ Words Vector(const T* vectors, int64_t row, int chunk) const {
    Words words = {};
    if (row >= rows_ || chunk >= chunks_) return words;
    words = *reinterpret_cast<const Words*>(vectors + row * stride_ +
                                            FirstNumber(chunk));
#pragma unroll
    for (uint32_t& word : words.word) word = TensorCore<T>::Prepare(word);
    return words;
  }

  __device__ void MultiplyTiles(
      int chunk, const Words (&vectors)[kColumns / 8],
      float (&products)[kTiles][kColumns / 8][4]) const {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      const Words weights[2] = {*Weight(chunk, m, 0), *Weight(chunk, m, 1)};
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        MultiplyChunk<T>(weights, vectors[n], products[m][n]);
      }
    }
  }

  __device__ void Write(
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

// What a thread does for units of rows: of its block's units and of so many
// rows, kColumns of them at a time.
class Places {
 public:
  __device__ Places(const Persistence<T>& shared, const Exchange<T>& exchange,
                    int64_t cell)
      : units_(static_cast<int>(shared.units)),
        first_unit_(exchange.rank() * shared.units),
        cell_(cell),
        first_row_(exchange.first()),
        rows_(exchange.rows()) {}

  // f(place, its row, unit of the block, row after b, whether it is the first
  // one of the thread) for each place, from row b on.
  template <class F>
  __device__ void ForEach(int64_t b, const F& f) const {
    for (int i = threadIdx.x; i < units_ * kColumns; i += blockDim.x) {
      const int column = i / units_, unit = i - column * units_;
      const Place at = At(b, unit, column);
      if (at.exists) {
        f(at, b + column, unit, column,
          b == 0 && i == static_cast<int>(threadIdx.x));
      }
    }
  }
  __device__ Place First() const {
    const int column = threadIdx.x / units_;
    const int unit = threadIdx.x - column * units_;
    Place at = At(0, unit, column);
    at.exists = at.exists && column < kColumns;
    return at;
  }

 private:
  __device__ Place At(int64_t b, int unit, int column) const {
    const int64_t row = b + column, u = first_unit_ + unit;
    return {first_row_ + row, u, row < rows_ && u < cell_};
  }

  const int units_;
  const int64_t first_unit_, cell_, first_row_, rows_;
};

__device__ inline C Keep(const Multipliers<T>& dropout, const Place& at) {
  return dropout.data ? Load(dropout.data, dropout.Index(0, at.b, at.u)) : C(1);
}

// Behind the exchange's vectors.
__device__ inline SharedMemory ForProduct(const Persistence<T>& shared,
                                          SharedMemory memory) {
  return memory + shared.vector_bytes / sizeof(Words);
}

}  // namespace

// What the first place of a thread needs for the next step is on its way while
// the blocks wait for each other.
TF_LSTM_OPS_COOPERATIVE_KERNEL(forward_steps, ForwardSteps<T, C>) {
  using Pass = Passes<Cell>;
  TF_LSTM_OPS_SHARED_MEMORY(memory);
  const Persistence<T>& shared = a.shared;
  const int64_t steps = a.step.sequence.steps, cell = a.step.cell.cell;
  const int units = static_cast<int>(shared.units);
  Exchange<T> exchange(shared, a.step.sequence.batch, memory);
  const auto weight = [&](int row, int64_t k) {  // row: [gates, units]
    const int64_t gate = row / units;
    const int64_t unit = exchange.rank() * shared.units + row - gate * units;
    const bool exists = gate < a.step.cell.gates && unit < cell && k < cell;
    return exists ? shared.weights[k * shared.row_stride +
                                   (gate * cell + unit) * shared.column_stride]
                  : T{};
  };
  const Product product(shared, exchange.rows(), ForProduct(shared, memory),
                        weight);
  const Places places(shared, exchange, cell);
  const Place first = places.First();
  typename Pass::Input ahead;
  if (first.exists && steps > 0) ahead = Pass::LoadInput(a.step, 0, first);
  for (int64_t s = 0; s < steps; ++s) {
    const T* before = exchange.vectors(s);
    for (int64_t b = 0; b < exchange.rows(); b += kColumns) {
      product.Multiply(before, b);
      places.ForEach(b, [&](const Place& at, int64_t row, int unit, int column,
                            bool is_first) {
        const typename Pass::Input input =
            is_first ? ahead : Pass::LoadInput(a.step, s, at);
        C h;
        const bool valid = Pass::Forward(
            a.step, s, at, input,
            [&](int block) {
              return product.Sum(block * units + unit, column);
            },
            &h);
        if (s + 1 == steps) return;
        exchange.Put(s + 1, row, at.u,
                     valid ? Number<T>::Store(h * Keep(shared.dropout, at))
                           : before[row * shared.stride + at.u]);
      });
      __syncthreads();
    }
    if (s + 1 == steps) break;
    exchange.Arrive();
    if (first.exists) ahead = Pass::LoadInput(a.step, s + 1, first);
    exchange.Await();
  }
}

TF_LSTM_OPS_COOPERATIVE_KERNEL(backward_steps, BackwardSteps<T, C>) {
  using Pass = Passes<Cell>;
  TF_LSTM_OPS_SHARED_MEMORY(memory);
  const Persistence<T>& shared = a.shared;
  const int64_t steps = a.step.sequence.steps;
  const int64_t cell = a.step.cell.cell, width = a.step.cell.gates * cell;
  Exchange<T> exchange(shared, a.step.sequence.batch, memory);
  const auto weight = [&](int row, int64_t k) {  // row: a unit
    const int64_t unit = exchange.rank() * shared.units + row;
    const bool exists = row < shared.units && unit < cell && k < width;
    return exists ? shared.weights[unit * shared.row_stride +
                                   k * shared.column_stride]
                  : T{};
  };
  const Product product(shared, exchange.rows(), ForProduct(shared, memory),
                        weight);
  const Places places(shared, exchange, cell);
  const Place first = places.First();
  typename Pass::Kept ahead;
  if (first.exists && steps > 0) {
    ahead = Pass::LoadKept(a.step, steps - 1, first);
  }
  const bool reaches_h0 = a.reaches_h0;
  for (int64_t s = steps - 1; s >= 0; --s) {
    const bool has_after = s + 1 < steps;
    for (int64_t b = 0; b < exchange.rows(); b += kColumns) {
      if (has_after) product.Multiply(exchange.vectors(s + 1), b);
      places.ForEach(b, [&](const Place& at, int64_t row, int unit, int column,
                            bool is_first) {
        const typename Pass::Kept kept =
            is_first ? ahead : Pass::LoadKept(a.step, s, at);
        const C from_h =
            has_after ? Keep(shared.dropout, at) * product.Sum(unit, column)
                      : C(0);
        Pass::Backward(a.step, at, kept, from_h, [&](int64_t k, T value) {
          if (s > 0 || reaches_h0) exchange.Put(s, row, k, value);
        });
      });
      __syncthreads();
    }
    if (s == 0 && !reaches_h0) return;
    exchange.Arrive();
    if (first.exists && s > 0) ahead = Pass::LoadKept(a.step, s - 1, first);
    exchange.Await();
  }
  for (int64_t b = 0; b < exchange.rows() && steps > 0; b += kColumns) {
    product.Multiply(exchange.vectors(0), b);
    places.ForEach(b, [&](const Place& at, int64_t, int unit, int column, bool) {
      a.step.dh[at.b * cell + at.u] +=
          Keep(shared.dropout, at) * product.Sum(unit, column);
    });
    __syncthreads();
  }
}

}  // namespace tf_lstm_ops::cuda
