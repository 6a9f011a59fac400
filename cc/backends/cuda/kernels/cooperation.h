// Operations of several threads: synchronisation, and products on tensor cores.
// The emulation in tests/cuda/fake defines the macros itself.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_COOPERATION_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_COOPERATION_H_

#include <cstdint>

#include "backends/cuda/kernels/kernel.h"

// A kernel whose threads synchronise. If blocks synchronise too, its launch
// must be cooperative or in clusters.
#ifndef TF_LSTM_OPS_COOPERATIVE_KERNEL
#define TF_LSTM_OPS_COOPERATIVE_KERNEL TF_LSTM_OPS_KERNEL
#endif

// The dynamic shared memory of a block; the launch sets its size.
#ifndef TF_LSTM_OPS_SHARED_MEMORY
#define TF_LSTM_OPS_SHARED_MEMORY(name) \
  extern __shared__ ::tf_lstm_ops::cuda::Words name[]
#endif

// c += a b by the instruction mma.sync.aligned of a `kind`, with the registers
// a[4], b[2] and c[4] of a lane. Source of the fragment layouts: the PTX ISA.
#ifndef TF_LSTM_OPS_MMA
#define TF_LSTM_OPS_MMA(kind, a, b, c)                                  \
  asm volatile("mma.sync.aligned." kind                                 \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "        \
               "{%0, %1, %2, %3};"                                      \
               : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3]) \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]),    \
                 "r"((b)[0]), "r"((b)[1]))
#endif

// Rounds a float to TF32, which has ten bits of fraction.
#ifndef TF_LSTM_OPS_TO_TF32
#define TF_LSTM_OPS_TO_TF32(to, from) \
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(to) : "f"(from))
#endif

// TF_LSTM_OPS_ARRIVE adds 1 to a counter in global memory with release order.
// TF_LSTM_OPS_LOAD_ARRIVALS reads it with acquire order. These orders are
// weaker than __threadfence().
#ifndef TF_LSTM_OPS_ARRIVE
#define TF_LSTM_OPS_ARRIVE(arrivals) \
  asm volatile("red.release.gpu.add.u32 [%0], 1;" ::"l"(arrivals) : "memory")
#define TF_LSTM_OPS_LOAD_ARRIVALS(to, arrivals) \
  asm volatile("ld.acquire.gpu.u32 %0, [%1];"   \
               : "=r"(to)                       \
               : "l"(arrivals)                  \
               : "memory")
#endif

// TF_LSTM_OPS_STORE_IN_CLUSTER stores a value in the shared memory of a block
// of the cluster, at the offset that `own` has in this block. The other two
// macros are the cluster's barrier.
#ifndef TF_LSTM_OPS_STORE_IN_CLUSTER
#define TF_LSTM_OPS_STORE_IN_CLUSTER(type, constraint, own, block, value) \
  asm volatile(                                                           \
      "{ .reg .u64 near; .reg .u32 low, far;"                             \
      " cvta.to.shared.u64 near, %0; cvt.u32.u64 low, near;"              \
      " mapa.shared::cluster.u32 far, low, %1;"                           \
      " st.shared::cluster." type " [far], %2; }" ::"l"(own),             \
      "r"(block), constraint(value)                                       \
      : "memory")
#define TF_LSTM_OPS_ARRIVE_IN_CLUSTER() \
  asm volatile("barrier.cluster.arrive.release;" ::: "memory")
#define TF_LSTM_OPS_WAIT_FOR_CLUSTER() \
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory")
#endif

namespace tf_lstm_ops::cuda {

// The 16 bytes of one load.
struct alignas(16) Words {
  uint32_t word[4];
};
using SharedMemory = Words*;

// A lane's registers of the factors of one instruction.
struct Factors {
  uint32_t a[4], b[2];
};

// Operands of tensor cores. Of 16-bit types:
struct TensorCore16 {
  // element(k): the k-th element.
  template <class E>
  __device__ static Words Pack(const E& element) {
    Words words;
    for (int w = 0; w < 4; ++w) {
      const uint32_t low = element(2 * w).bits, high = element(2 * w + 1).bits;
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
  __device__ static void Multiply(const Factors& f, float (&c)[4]) {
    TF_LSTM_OPS_MMA("m16n8k16.row.col.f32.f16.f16.f32", f.a, f.b, c);
  }
};
template <>
struct TensorCore<BFloat16> : TensorCore16 {
  __device__ static void Multiply(const Factors& f, float (&c)[4]) {
    TF_LSTM_OPS_MMA("m16n8k16.row.col.f32.bf16.bf16.f32", f.a, f.b, c);
  }
};
template <>
struct TensorCore<float> {
  template <class E>
  __device__ static Words Pack(const E& element) {
    Words words;
    for (int w = 0; w < 4; ++w) {
      TF_LSTM_OPS_TO_TF32(words.word[w], element(w));
    }
    return words;
  }
  __device__ static uint32_t Prepare(uint32_t word) {
    TF_LSTM_OPS_TO_TF32(word, FloatFromBits(word));
    return word;
  }
  __device__ static void Multiply(const Factors& f, float (&c)[4]) {
    TF_LSTM_OPS_MMA("m16n8k8.row.col.f32.tf32.tf32.f32", f.a, f.b, c);
  }
};

// c [16, 8] += a b^T, where a has 16 rows and b has 8 rows, each of 64 bytes.
// Four lanes share a row; each holds 16 bytes of it. Let q = lane / 4 and
// r = lane % 4. A lane holds rows q and q + 8 of a, row q of b, and columns 2r
// and 2r + 1 of rows q and q + 8 of c. One instruction multiplies half of the
// bytes. The order of k within a row does not matter if a and b have the same
// order.
template <class T>
__device__ inline void MultiplyChunk(const Words (&a)[2], const Words& b,
                                     float (&c)[4]) {
#pragma unroll
  for (int w = 0; w < 4; w += 2) {
    TensorCore<T>::Multiply(
        {{a[0].word[w], a[1].word[w], a[0].word[w + 1], a[1].word[w + 1]},
         {b.word[w], b.word[w + 1]}},
        c);
  }
}

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_KERNELS_COOPERATION_H_
