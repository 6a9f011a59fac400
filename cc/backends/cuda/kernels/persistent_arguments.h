// The parameters of the kernels in persistent.cu, for them and for the host.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_

#include <cstdint>

#include "backends/cuda/kernels/step_arguments.h"

namespace tf_lstm_ops::cuda {

// Rows of weights in one tensor-core tile.
constexpr int kTileRows = 16;
// Consecutive bytes of a row, a chunk. Four lanes load it, 16 bytes each.
constexpr int kChunkBytes = 64;
// Rows of the batch that are multiplied at a time.
constexpr int kColumns = 16;

// The part of a product that one warp computes, [rows of weights, rows of the
// batch]. Because of the extra column, the rows begin in different banks of
// shared memory.
template <int kTiles>
using WarpProducts = float[kTiles * kTileRows][kColumns + 1];

// How the units of a layer are distributed over the blocks of a group
// (block_group.h). All pointers are to device memory.
template <class T>
struct GroupArguments {
  int64_t units = 0;         // per block
  int64_t rows = 0;          // rows of the batch per group
  int64_t blocks = 0;        // per group
  int64_t vector_bytes = 0;  // shared memory per block for vectors
  // The recurrent weights of all gates, [H, G*H].
  const T* weights = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  // The vectors that the blocks exchange, one for each row of the batch: h
  // after dropout in a forward pass, the gradients of the pre-activations in a
  // backward pass. Grid form: [2, B, stride], two sets that steps use
  // alternately. Cluster form: [B, stride], the initial vectors. The elements
  // from the end of a vector to `stride` are zeros.
  T* vectors = nullptr;
  int64_t stride = 0;            // a multiple of kChunkBytes / sizeof(T)
  uint32_t* arrivals = nullptr;  // counts arrivals of blocks; begins with 0
  Multipliers<T> dropout;        // of the previous h; one set for all gates
};

// All forward steps. The members step, recurrent_product, dropped_h and dropout
// of `step` are not used. The first set of vectors is h0 after dropout.
template <class T, class C>
struct ForwardSteps {
  ForwardStep<T, C> step;
  GroupArguments<T> group;
};

// All backward steps. The members step and step_z_grad of `step` are not used.
template <class T, class C>
struct BackwardSteps {
  BackwardStep<T, C> step;
  GroupArguments<T> group;
  bool wants_h0_grad = false;  // in step.next_h_grad, at the end
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_PERSISTENT_ARGUMENTS_H_
