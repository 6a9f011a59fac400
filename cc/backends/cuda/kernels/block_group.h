// BlockGroup: the blocks that share a layer. After each step they exchange the
// vectors that they computed and synchronise. Compiled for one element type, T,
// and one of two forms, which this macro names:
//
//   TF_LSTM_OPS_CLUSTER  0: all blocks of a cooperative launch are one group,
//                        with all rows of the batch. Vectors lie in global
//                        memory; a counter there is the barrier.
//                        1: the blocks of each cluster are a group, with some
//                        rows of the batch. Each block has all vectors of its
//                        group in its own shared memory; a block writes those
//                        of its units to all others (distributed shared
//                        memory). The cluster's hardware barrier is the
//                        barrier.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_BLOCK_GROUP_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_BLOCK_GROUP_H_

#include "backends/cuda/kernels/cooperation.h"
#include "backends/cuda/kernels/persistent_arguments.h"

namespace tf_lstm_ops::cuda {

#if TF_LSTM_OPS_CLUSTER

template <class T>
class BlockGroup {
 public:
  __device__ BlockGroup(const GroupArguments<T>& group, int64_t batch,
                        SharedMemory memory)
      : stride_(group.stride),
        blocks_(static_cast<int>(group.blocks)),
        vectors_(reinterpret_cast<T*>(memory)) {
    const int64_t first = blockIdx.x / blocks_ * group.rows;
    first_row_ = first < batch ? first : batch;
    rows_ = batch - first_row_ < group.rows ? batch - first_row_ : group.rows;
    const T* initial = group.vectors + first_row_ * stride_;
    const int64_t size = rows_ * stride_;
    for (int64_t i = threadIdx.x; i < 2 * size; i += blockDim.x) {
      vectors_[i] = i < size ? initial[i] : T{};
    }
    // A block must not write to the shared memory of one that has not started.
    Arrive();
    Wait();
  }

  // The number of this block in its group.
  __device__ int rank() const { return blockIdx.x % blocks_; }
  // The group's rows of the batch: [first_row, first_row + rows).
  __device__ int64_t first_row() const { return first_row_; }
  __device__ int64_t rows() const { return rows_; }

  // The vectors of step n, [rows, stride].
  __device__ const T* vectors(int64_t n) const {
    return vectors_ + n % 2 * rows_ * stride_;
  }
  // Writes an element of the vectors of step n, which this block computed, for
  // all blocks of the group. Must not be called where a block of the group may
  // have ended.
  __device__ void Put(int64_t n, int64_t row, int64_t k, T value) const {
    T* const own = vectors_ + (n % 2 * rows_ + row) * stride_ + k;
    for (int block = 0; block < blocks_; ++block) StoreIn(block, own, value);
  }

  // After Wait every block sees what all blocks put before Arrive.
  __device__ void Arrive() { TF_LSTM_OPS_ARRIVE_IN_CLUSTER(); }
  __device__ void Wait() { TF_LSTM_OPS_WAIT_FOR_CLUSTER(); }

 private:
  template <class Number16>
  __device__ static void StoreIn(int block, Number16* own, Number16 value) {
    TF_LSTM_OPS_STORE_IN_CLUSTER("b16", "h", own, block, value.bits);
  }
  __device__ static void StoreIn(int block, float* own, float value) {
    TF_LSTM_OPS_STORE_IN_CLUSTER("f32", "f", own, block, value);
  }

  const int64_t stride_;
  const int blocks_;
  T* const vectors_;
  int64_t first_row_, rows_;
};

#else

// The members are those of the class above.
template <class T>
class BlockGroup {
 public:
  __device__ BlockGroup(const GroupArguments<T>& group, int64_t batch,
                        SharedMemory)
      : group_(group), batch_(batch) {}

  __device__ int rank() const { return blockIdx.x; }
  __device__ int64_t first_row() const { return 0; }
  __device__ int64_t rows() const { return batch_; }

  __device__ const T* vectors(int64_t n) const {
    return group_.vectors + n % 2 * batch_ * group_.stride;
  }
  __device__ void Put(int64_t n, int64_t row, int64_t k, T value) const {
    group_.vectors[(n % 2 * batch_ + row) * group_.stride + k] = value;
  }

  __device__ void Arrive() {
    __syncthreads();
    ++barriers_;
    if (threadIdx.x == 0) TF_LSTM_OPS_ARRIVE(group_.arrivals);
  }
  __device__ void Wait() {
    if (threadIdx.x == 0) {
      uint32_t arrived = 0;
      while (arrived < barriers_ * gridDim.x) {
        TF_LSTM_OPS_LOAD_ARRIVALS(arrived, group_.arrivals);
      }
    }
    __syncthreads();
  }

 private:
  const GroupArguments<T>& group_;
  const int64_t batch_;
  uint32_t barriers_ = 0;  // that this block has arrived at
};

#endif

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_BLOCK_GROUP_H_
