// All steps of a layer in one launch. A block has some units: it keeps their
// recurrent weights in shared memory from the first step to the last, and after
// each step all blocks wait for each other once. The macros of cell_passes.h,
// and
//
//   TF_LSTM_OPS_TILES   of kTileRows rows of weights in a block
#include "backends/cuda/kernels/cell_passes.h"
#include "backends/cuda/kernels/cooperation.h"
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
  // at(row, k): a weight, 0 behind the last one.
  template <class At>
  __device__ Product(const Persistence<T>& shared, int64_t batch,
                     SharedMemory memory, const At& at)
      : stride_(shared.stride),
        batch_(batch),
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

  // With kColumns rows of the batch, from row b on. The block waits.
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

  // The product of a row of weights and a row of the batch after b.
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
    if (row >= batch_ || chunk >= chunks_) return words;
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

  const int64_t stride_, batch_;
  const int chunks_;
  WarpSums* const sums_;
  Words* const weights_;
};

// f(place, unit of the block, row of the batch after b) for each of the block's
// units and of kColumns rows of the batch, from row b on.
template <class F>
__device__ inline void ForPlaces(const Persistence<T>& shared, int64_t cell,
                                 int64_t b, int64_t batch, const F& f) {
  const int units = static_cast<int>(shared.units);
  for (int i = threadIdx.x; i < units * kColumns; i += blockDim.x) {
    const int column = i / units, unit = i - column * units;
    const Place at = {b + column, blockIdx.x * shared.units + unit, true};
    if (at.b < batch && at.u < cell) f(at, unit, column);
  }
}

__device__ inline C Kept(const Multipliers<T>& dropout, const Place& at) {
  return dropout.data ? Load(dropout.data, dropout.At(0, at.b, at.u)) : C(1);
}

// One of the two sets of vectors.
__device__ inline T* Vectors(const Persistence<T>& shared, int64_t batch,
                             int64_t n) {
  return shared.vectors + n % 2 * batch * shared.stride;
}

}  // namespace

TF_LSTM_OPS_COOPERATIVE_KERNEL(forward_steps, ForwardSteps<T, C>) {
  TF_LSTM_OPS_SHARED_MEMORY(memory);
  const Persistence<T>& shared = a.shared;
  const int64_t batch = a.step.steps.batch, steps = a.step.steps.steps;
  const int64_t cell = a.step.cell.cell;
  const int units = static_cast<int>(shared.units);
  const auto weight = [&](int row, int64_t k) {  // row: [gates, units]
    const int64_t gate = row / units;
    const int64_t unit = blockIdx.x * shared.units + row - gate * units;
    const bool exists = gate < a.step.cell.gates && unit < cell && k < cell;
    return exists ? shared.weights[k * shared.row_stride +
                                   (gate * cell + unit) * shared.column_stride]
                  : T{};
  };
  const Product product(shared, batch, memory, weight);
  for (int64_t s = 0; s < steps; ++s) {
    const T* before = Vectors(shared, batch, s);
    T* after = Vectors(shared, batch, s + 1);
    for (int64_t b = 0; b < batch; b += kColumns) {
      product.Multiply(before, b);
      ForPlaces(
          shared, cell, b, batch, [&](const Place& at, int unit, int column) {
            C h;
            const bool valid = Passes<Cell>::Forward(
                a.step, s, at,
                [&](int block) {
                  return product.Sum(block * units + unit, column);
                },
                &h);
            const int64_t to = at.b * shared.stride + at.u;
            after[to] = valid ? Number<T>::Store(h * Kept(shared.dropout, at))
                              : before[to];
          });
      __syncthreads();
    }
    if (s + 1 < steps) {
      WaitForBlocks(shared.arrivals, static_cast<uint32_t>(s + 1));
    }
  }
}

TF_LSTM_OPS_COOPERATIVE_KERNEL(backward_steps, BackwardSteps<T, C>) {
  TF_LSTM_OPS_SHARED_MEMORY(memory);
  const Persistence<T>& shared = a.shared;
  const int64_t batch = a.step.steps.batch, steps = a.step.steps.steps;
  const int64_t cell = a.step.cell.cell, width = a.step.cell.gates * cell;
  const auto weight = [&](int row, int64_t k) {  // row: a unit
    const int64_t unit = blockIdx.x * shared.units + row;
    const bool exists = row < shared.units && unit < cell && k < width;
    return exists ? shared.weights[unit * shared.row_stride +
                                   k * shared.column_stride]
                  : T{};
  };
  const Product product(shared, batch, memory, weight);
  for (int64_t s = steps - 1; s >= 0; --s) {
    T* dz = Vectors(shared, batch, s);
    for (int64_t b = 0; b < batch; b += kColumns) {
      ForPlaces(shared, cell, b, batch, [&](const Place& at, int, int) {
        Passes<Cell>::Backward(a.step, s, at, dz + at.b * shared.stride);
      });
    }
    if (s == 0 && !a.reaches_h0) break;
    WaitForBlocks(shared.arrivals, static_cast<uint32_t>(steps - s));
    for (int64_t b = 0; b < batch; b += kColumns) {
      product.Multiply(dz, b);
      ForPlaces(shared, cell, b, batch,
                [&](const Place& at, int unit, int column) {
                  a.step.dh[at.b * cell + at.u] +=
                      Kept(shared.dropout, at) * product.Sum(unit, column);
                });
      __syncthreads();
    }
  }
}

}  // namespace tf_lstm_ops::cuda
