// Exchange: the vectors that the blocks of a layer tell each other after each
// step, and how they wait for each other. For one type of tensors, T, and one
// of two ways, which this macro names:
//
//   TF_LSTM_OPS_CLUSTER  0: all blocks of the launch have all rows of the
//   batch;
//                        vectors are in the device's memory.
//                        1: the blocks of a cluster have some of the rows; each
//                        block has all their vectors in its own shared memory,
//                        and writes those of its units to all others'.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_EXCHANGE_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_EXCHANGE_H_

#include "backends/cuda/kernels/cooperation.h"
#include "backends/cuda/kernels/persistent_arguments.h"

namespace tf_lstm_ops::cuda {

#if TF_LSTM_OPS_CLUSTER

template <class T>
class Exchange {
 public:
  __device__ Exchange(const Persistence<T>& shared, int64_t batch,
                      SharedMemory memory)
      : stride_(shared.stride),
        blocks_(static_cast<int>(shared.blocks)),
        vectors_(reinterpret_cast<T*>(memory)) {
    const int64_t first = blockIdx.x / blocks_ * shared.rows;
    first_ = first < batch ? first : batch;
    rows_ = batch - first_ < shared.rows ? batch - first_ : shared.rows;
    const T* initial = shared.vectors + first_ * stride_;
    const int64_t size = rows_ * stride_;
    for (int64_t i = threadIdx.x; i < 2 * size; i += blockDim.x) {
      vectors_[i] = i < size ? initial[i] : T{};
    }
    // Nobody writes to a block that is not there yet.
    Arrive();
    Await();
  }

  // Of this block among those that share the layer.
  __device__ int rank() const { return blockIdx.x % blocks_; }
  // Of the batch, that these blocks have.
  __device__ int64_t first() const { return first_; }
  __device__ int64_t rows() const { return rows_; }

  // One of the two sets of vectors, [rows, stride].
  __device__ const T* vectors(int64_t n) const {
    return vectors_ + n % 2 * rows_ * stride_;
  }
  // A number that this block knows, for all of them. Not once a block may have
  // ended.
  __device__ void Put(int64_t n, int64_t row, int64_t k, T value) const {
    T* const here = vectors_ + (n % 2 * rows_ + row) * stride_ + k;
    for (int block = 0; block < blocks_; ++block) {
      Store(here, block, value);
    }
  }

  // What all have put before they arrive, all see once they have waited.
  __device__ void Arrive() { TF_LSTM_OPS_ARRIVE_IN_CLUSTER(); }
  __device__ void Await() { TF_LSTM_OPS_AWAIT_CLUSTER(); }

 private:
  template <class Number16>
  __device__ static void Store(Number16* here, int block, Number16 value) {
    TF_LSTM_OPS_STORE_IN_CLUSTER("b16", "h", here, block, value.bits);
  }
  __device__ static void Store(float* here, int block, float value) {
    TF_LSTM_OPS_STORE_IN_CLUSTER("f32", "f", here, block, value);
  }

  const int64_t stride_;
  const int blocks_;
  T* const vectors_;
  int64_t first_, rows_;
};

#else

template <class T>
class Exchange {
 public:
  __device__ Exchange(const Persistence<T>& shared, int64_t batch, SharedMemory)
      : shared_(shared), batch_(batch) {}

  __device__ int rank() const { return blockIdx.x; }
  __device__ int64_t first() const { return 0; }
  __device__ int64_t rows() const { return batch_; }

  __device__ const T* vectors(int64_t n) const {
    return shared_.vectors + n % 2 * batch_ * shared_.stride;
  }
  __device__ void Put(int64_t n, int64_t row, int64_t k, T value) const {
    shared_.vectors[(n % 2 * batch_ + row) * shared_.stride + k] = value;
  }

  __device__ void Arrive() {
    __syncthreads();
    ++times_;
    if (threadIdx.x == 0) TF_LSTM_OPS_ARRIVE(shared_.arrivals);
  }
  __device__ void Await() {
    if (threadIdx.x == 0) {
      uint32_t arrived = 0;
      while (arrived < times_ * gridDim.x) {
        TF_LSTM_OPS_LOAD_ARRIVALS(arrived, shared_.arrivals);
      }
    }
    __syncthreads();
  }

 private:
  const Persistence<T>& shared_;
  const int64_t batch_;
  uint32_t times_ = 0;
};

#endif

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_EXCHANGE_H_
