// The parameters of the kernels in persistent.cu, for them and for the host.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_

#include <cstdint>

#include "backends/cuda/kernels/rnn_arguments.h"

namespace tf_lstm_ops::cuda {

// Rows of weights that a tensor core takes at once.
constexpr int kTileRows = 16;
// Bytes of a row that four lanes take at once.
constexpr int kChunkBytes = 64;
// Rows of the batch that are multiplied at a time.
constexpr int kColumns = 16;

// What a warp adds to a product: [rows of weights, rows of the batch]. A column
// more than these: rows begin in different banks of shared memory.
template <int kTiles>
using WarpProducts = float[kTiles * kTileRows][kColumns + 1];

// How the blocks share a layer.
template <class T>
struct Persistence {
  int64_t units = 0;         // of a block
  int64_t rows = 0;          // of the batch, of the blocks that share a layer
  int64_t blocks = 0;        // that do
  int64_t vector_bytes = 0;  // of a block's shared memory, for vectors
  // The recurrent weights of all gates, [H, G*H].
  const T* weights = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  // What blocks tell each other: rows of the batch that are multiplied with the
  // weights, [2, B, stride]; of a cluster only what the first step begins with,
  // [B, stride]. Numbers behind the last column are zeros.
  T* vectors = nullptr;
  int64_t stride = 0;            // a multiple of kChunkBytes / sizeof(T)
  uint32_t* arrivals = nullptr;  // of blocks where they wait; begins with 0
  Multipliers<T> dropout;        // of the previous output; one for all gates
};

// All steps forward. Of `step`, `step`, `from_h`, `seen_h` and `dropout` are
// not used. The first of `vectors` is the initial output as the gates see it.
template <class T, class C>
struct ForwardSteps {
  ForwardStep<T, C> step;
  Persistence<T> shared;
};

// All steps backward. Of `step`, `step` and `dz_step` are not used.
template <class T, class C>
struct BackwardSteps {
  BackwardStep<T, C> step;
  Persistence<T> shared;
  bool reaches_h0 = false;  // whether step 0 adds to dh
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_
