// The parameters of the kernels in persistent.cu, for them and for the host.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_

#include <cstdint>

#include "backends/cuda/kernels/step_arguments.h"

namespace tf_lstm_ops::cuda {

// Rows of weights in one tensor-core tile.
constexpr int kTileRows = 16;
// Bytes of a row that four lanes load together.
constexpr int kChunkBytes = 64;
// Rows of the batch that are multiplied at a time.
constexpr int kColumns = 16;

// One warp's share of a product: [rows of weights, rows of the batch]. The
// extra column makes the rows begin in different banks of shared memory.
template <int kTiles>
using WarpProducts = float[kTiles * kTileRows][kColumns + 1];

// How the blocks of a group share a layer.
template <class T>
struct GroupArguments {
  int64_t units = 0;         // of a block
  int64_t rows = 0;          // of the batch, of a group
  int64_t blocks = 0;        // of a group
  int64_t vector_bytes = 0;  // of a block's shared memory, for vectors
  // The recurrent weights of all gates, [H, G*H].
  const T* weights = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  // The rows that the weights are multiplied with, which the blocks exchange:
  // [2, B, stride], two sets in turn; in clusters the initial ones only, [B,
  // stride]. Elements behind the last column are zeros.
  T* vectors = nullptr;
  int64_t stride = 0;            // a multiple of kChunkBytes / sizeof(T)
  uint32_t* arrivals = nullptr;  // counts arrivals of blocks; begins with 0
  Multipliers<T> dropout;        // of the previous h; one set for all gates
};

// All forward steps. Of `step`, the members step, recurrent_product, dropped_h
// and dropout are not used. The first set of vectors is h0 after dropout.
template <class T, class C>
struct ForwardSteps {
  ForwardStep<T, C> step;
  GroupArguments<T> group;
};

// All backward steps. Of `step`, the members step and step_z_grad are not used.
template <class T, class C>
struct BackwardSteps {
  BackwardStep<T, C> step;
  GroupArguments<T> group;
  bool wants_h0_grad = false;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_
