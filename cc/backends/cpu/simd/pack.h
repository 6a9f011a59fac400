// Packing: copies columns of a matrix to vectors, in the order in which the
// product kernels read them.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_PACK_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_PACK_H_

#include "backends/cpu/simd/vec.h"
#include "backends/cpu/sizes.h"
#include "core/float16.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// How packed weights are stored. Each format has a case in the packing and in
// the choice of the product kernel (MultiplyRows).
enum class WeightFormat {
  kElements,       // of the type in which the engine computes
  kBFloat16Pairs,  // BFloat16Pair, two rows of the weights in a word
};

// The number of words that store `elements` elements. A word has the size of an
// element in which the engine computes.
constexpr int64_t Words(int64_t elements, WeightFormat format) {
  return format == WeightFormat::kBFloat16Pairs ? (elements + 1) / 2 : elements;
}

constexpr WeightFormat FormatOf(bool bfloat16) {
  return bfloat16 ? WeightFormat::kBFloat16Pairs : WeightFormat::kElements;
}

// Whether the matrix that is multiplied with the weights, such as x, is rounded
// to the same format. Otherwise the weights are converted to float.
constexpr bool RoundsFactors(WeightFormat format) {
  return kDotsPairs && format == WeightFormat::kBFloat16Pairs;
}

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

inline uint32_t ToBFloat16(float x) { return BFloat16::FromFloat(x).bits; }
inline uint32_t ToBFloat16(BFloat16 x) { return x.bits; }

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

// One vector of columns as pairs of rows: 2 k and 2 k + 1 go to row k. A
// missing row counts as zero.
template <class E>
void PackPairs(const PackedFrom<E>& from, BFloat16Pair* packed,
               int64_t stride) {
  constexpr int kL = kLanes<BFloat16Pair>;
  for (int64_t k = 0; k < from.depth; k += 2, packed += stride) {
    const E* row = from.data + k * from.row_stride;
    const int64_t second = k + 1 < from.depth ? from.row_stride : 0;
    const uint32_t mask = k + 1 < from.depth ? ~0u : 0xffffu;
    if (from.column_stride == 1) {
      Store<BFloat16Pair>((ToBFloat16(LoadN(row, from.width)) |
                           ToBFloat16(LoadN(row + second, from.width)) << 16) &
                              mask,
                          packed);
      continue;
    }
    uint32_t pairs[kL] = {};
    for (int64_t n = 0; n < from.width; ++n, row += from.column_stride) {
      pairs[n] = (ToBFloat16(row[0]) | ToBFloat16(row[second]) << 16) & mask;
    }
    std::memcpy(packed, pairs, sizeof pairs);
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

// Rounds the first `width` lanes of a vector, at most all, to a row of pairs
// from element u on. If their number is odd, the last pair's other element is
// zero: the next lane may hold NaN, which times the zero of a missing weight is
// NaN.
TF_LSTM_OPS_INLINE void StorePairs(VecT<float> v, float* row, int64_t u,
                                   int64_t width) {
  BFloat16* to = reinterpret_cast<BFloat16*>(row) + u;
  StoreN(v, to, width);
  if (width < kLanes<float> && width % 2 != 0) {
    std::memset(to + width, 0, sizeof *to);
  }
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_PACK_H_
