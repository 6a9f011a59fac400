// What threads do together: wait for each other, and multiply with tensor
// cores. Tests on the host define the macros otherwise.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_COOPERATION_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_COOPERATION_H_

#include <cstdint>

#include "backends/cuda/kernels/kernel.h"

// A kernel whose threads wait for each other. Where its blocks do, it must be
// launched as a cooperative one.
#ifndef TF_LSTM_OPS_COOPERATIVE_KERNEL
#define TF_LSTM_OPS_COOPERATIVE_KERNEL TF_LSTM_OPS_KERNEL
#endif

// The memory that the threads of a block share, as large as the launch says.
#ifndef TF_LSTM_OPS_SHARED_MEMORY
#define TF_LSTM_OPS_SHARED_MEMORY(name) \
  extern __shared__ ::tf_lstm_ops::cuda::Words name[]
#endif

// c += a b by the instruction mma.sync.aligned of a `kind`, whose fragments the
// PTX ISA describes.
#ifndef TF_LSTM_OPS_MMA
#define TF_LSTM_OPS_MMA(kind, a0, a1, a2, a3, b0, b1, c)                \
  asm volatile("mma.sync.aligned." kind                                 \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "        \
               "{%0, %1, %2, %3};"                                      \
               : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3]) \
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#endif

// The float of ten bits of fraction that is next to a float.
#ifndef TF_LSTM_OPS_TO_TF32
#define TF_LSTM_OPS_TO_TF32(to, from) \
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(to) : "f"(from))
#endif

// Adds 1 to what blocks that have come here count in memory; reads it. What was
// written before the one is seen after the other: weaker than __threadfence(),
// and faster.
#ifndef TF_LSTM_OPS_ARRIVE
#define TF_LSTM_OPS_ARRIVE(arrivals) \
  asm volatile("red.release.gpu.add.u32 [%0], 1;" ::"l"(arrivals) : "memory")
#define TF_LSTM_OPS_LOAD_ARRIVALS(to, arrivals) \
  asm volatile("ld.acquire.gpu.u32 %0, [%1];"   \
               : "=r"(to)                       \
               : "l"(arrivals)                  \
               : "memory")
#endif

// Writes a number to a block of the cluster, by its number, where this block
// has its own `here`.
#ifndef TF_LSTM_OPS_STORE_IN_CLUSTER
#define TF_LSTM_OPS_STORE_IN_CLUSTER(type, constraint, here, block, number) \
  asm volatile(                                                             \
      "{ .reg .u64 near; .reg .u32 low, far;"                               \
      " cvta.to.shared.u64 near, %0; cvt.u32.u64 low, near;"                \
      " mapa.shared::cluster.u32 far, low, %1;"                             \
      " st.shared::cluster." type " [far], %2; }" ::"l"(here),              \
      "r"(block), constraint(number)                                        \
      : "memory")
#define TF_LSTM_OPS_ARRIVE_IN_CLUSTER() \
  asm volatile("barrier.cluster.arrive.release;" ::: "memory")
#define TF_LSTM_OPS_AWAIT_CLUSTER() \
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory")
#endif

namespace tf_lstm_ops::cuda {

// What a lane loads at once.
struct alignas(16) Words {
  uint32_t word[4];
};
using SharedMemory = Words*;

// Numbers as tensor cores take them. Those of 16 bits:
struct TensorCore16 {
  // at(k): number k.
  template <class At>
  __device__ static Words Pack(const At& at) {
    Words words;
    for (int w = 0; w < 4; ++w) {
      const uint32_t low = at(2 * w).bits, high = at(2 * w + 1).bits;
      words.word[w] = low | high << 16;
    }
    return words;
  }
  __device__ static uint32_t Prepare(uint32_t word) { return word; }
};

template <class T>
struct TensorCore;
template <>
struct TensorCore<Half> : TensorCore16 {
  __device__ static void Multiply(uint32_t a0, uint32_t a1, uint32_t a2,
                                  uint32_t a3, uint32_t b0, uint32_t b1,
                                  float (&c)[4]) {
    TF_LSTM_OPS_MMA("m16n8k16.row.col.f32.f16.f16.f32", a0, a1, a2, a3, b0, b1,
                    c);
  }
};
template <>
struct TensorCore<BFloat16> : TensorCore16 {
  __device__ static void Multiply(uint32_t a0, uint32_t a1, uint32_t a2,
                                  uint32_t a3, uint32_t b0, uint32_t b1,
                                  float (&c)[4]) {
    TF_LSTM_OPS_MMA("m16n8k16.row.col.f32.bf16.bf16.f32", a0, a1, a2, a3, b0,
                    b1, c);
  }
};
template <>
struct TensorCore<float> {
  template <class At>
  __device__ static Words Pack(const At& at) {
    Words words;
    for (int w = 0; w < 4; ++w) TF_LSTM_OPS_TO_TF32(words.word[w], at(w));
    return words;
  }
  __device__ static uint32_t Prepare(uint32_t word) {
    TF_LSTM_OPS_TO_TF32(word, FloatFromBits(word));
    return word;
  }
  __device__ static void Multiply(uint32_t a0, uint32_t a1, uint32_t a2,
                                  uint32_t a3, uint32_t b0, uint32_t b1,
                                  float (&c)[4]) {
    TF_LSTM_OPS_MMA("m16n8k8.row.col.f32.tf32.tf32.f32", a0, a1, a2, a3, b0, b1,
                    c);
  }
};

// c += a b': 16 rows of a and 8 of b, of 64 bytes, which four lanes have. A
// lane has 16 of these bytes: of row lane / 4 and of the one 8 below of a, and
// of row lane / 4 of b; of c, [16, 8], in these two rows columns 2 * (lane % 4)
// and the next. An instruction takes half of the bytes. Which it takes for
// which k does not matter, as long as a and b agree.
template <class T>
__device__ inline void MultiplyChunk(const Words (&a)[2], const Words& b,
                                     float (&c)[4]) {
#pragma unroll
  for (int w = 0; w < 4; w += 2) {
    TensorCore<T>::Multiply(a[0].word[w], a[1].word[w], a[0].word[w + 1],
                            a[1].word[w + 1], b.word[w], b.word[w + 1], c);
  }
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_COOPERATION_H_
