// Packing: copies columns of a matrix to vectors, in the order in which the
// product kernels read them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PACK_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PACK_H_

#include "backends/cpu/simd/vector/pairs.h"
#include "backends/cpu/simd/vector/vec.h"
#include "backends/cpu/sizes.h"
#include "core/float16.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T>
constexpr int64_t RoundUpToLanes(int64_t n) {
  return CeilDiv(n, kLanes<T>) * kLanes<T>;
}

// Element (k, n) of B [depth, width] is at data[k * row_stride + n *
// column_stride]. One of the strides is 1.
template <class E>
struct PackedFrom {
  const E* data;
  int64_t row_stride, column_stride;
  int64_t depth, width;
};
template <class E>
PackedFrom(const E*, int64_t, int64_t, int64_t, int64_t) -> PackedFrom<E>;

// Vector v of the columns goes to data + v * distance. Row k of a vector is
// k * stride behind its first row.
template <class T>
struct PackedTo {
  T* data;
  int64_t stride, distance;
};

// Rows from the one that is packed to the one that is prefetched, which is on
// another page of memory: lstm,4,25,1024,1024 took 0.94 of the time.
constexpr int64_t kPackedAhead = 6;

// B has contiguous rows.
template <class E, class T>
void PackRows(const PackedFrom<E>& from, const PackedTo<T>& to) {
  constexpr int kL = kLanes<T>;
  for (int64_t k = 0; k < from.depth; ++k) {
    const E* row = from.data + k * from.row_stride;
    T* packed = to.data + k * to.stride;
    for (int64_t n = 0; n < from.width; n += kL, packed += to.distance) {
      PrefetchToRead(row + kPackedAhead * from.row_stride + n);
      Store(LoadN(row + n, from.width - n), packed);
    }
  }
}

// B has contiguous columns: one vector of them, at most kLanes.
template <class E, class T>
void PackColumns(const PackedFrom<E>& from, T* packed, int64_t stride) {
  constexpr int kL = kLanes<T>;
  for (int64_t k = 0; k < from.depth; k += kL) {
    VecT<T> square[kL] = {};
    for (int64_t n = 0; n < from.width; ++n) {
      square[n] = LoadN(from.data + n * from.column_stride + k, from.depth - k);
    }
    Transpose(square);
    for (int64_t r = 0; r < Min(kL, from.depth - k); ++r) {
      Store(square[r], packed + (k + r) * stride);
    }
  }
}

// Missing columns of the last vector become zero.
template <class E, class T>
void PackVectors(const PackedFrom<E>& from, const PackedTo<T>& to,
                 WeightFormat format) {
  constexpr int64_t kL = kLanes<T>;
  const bool pairs = format == WeightFormat::kBFloat16Pairs;
  if (!pairs && from.column_stride == 1) return PackRows(from, to);
  PackedFrom<E> vector = from;
  T* packed = to.data;
  for (int64_t n = 0; n < from.width; n += kL, packed += to.distance) {
    vector.data = from.data + n * from.column_stride;
    vector.width = Min(kL, from.width - n);
    if constexpr (std::is_same_v<T, float>) {
      if (pairs) {
        PackPairs(vector, reinterpret_cast<BFloat16Pair*>(packed), to.stride);
        continue;
      }
    }
    PackColumns(vector, packed, to.stride);
  }
}

// Columns [begin, end) of B side by side: [depth, vectors, lanes].
template <class E, class T>
void PackGroup(PackedFrom<E> from, int64_t begin, int64_t end, T* packed,
               WeightFormat format) {
  constexpr int64_t kL = kLanes<T>;
  from.data += begin * from.column_stride;
  from.width = end - begin;
  PackVectors(from, PackedTo<T>{packed, RoundUpToLanes<T>(end - begin), kL},
              format);
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_PACK_H_
