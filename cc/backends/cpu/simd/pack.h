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

// Rows of pairs have a multiple of so many words, with zeros at the end.
constexpr int64_t kWordBlock = kTiles ? 16 : 1;

// The number of words that store `elements` elements. A word has the size of an
// element in which the engine computes.
constexpr int64_t Words(int64_t elements, WeightFormat format) {
  return format == WeightFormat::kBFloat16Pairs
             ? CeilDiv(elements, 2 * kWordBlock) * kWordBlock
             : elements;
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

// Pairs of the lanes of two vectors, rounded.
TF_LSTM_OPS_INLINE VecT<BFloat16Pair> Pairs(VecT<float> first,
                                            VecT<float> second) {
  return ToBFloat16(first) | ToBFloat16(second) << 16;
}

// Pairs of neighbouring lanes of the concatenation of `a` and `b`.
template <int... k>
TF_LSTM_OPS_INLINE VecT<BFloat16Pair> NeighbourPairs(
    VecT<float> a, VecT<float> b, std::integer_sequence<int, k...>) {
  return Pairs(Shuffle<float, 2 * k...>(a, b),
               Shuffle<float, 2 * k + 1 ...>(a, b));
}

// The first n elements of a row as pairs, at most 2 kLanes; the others are 0.
template <class E>
TF_LSTM_OPS_INLINE VecT<BFloat16Pair> LoadPairs(const E* from, int64_t n) {
  constexpr int kL = kLanes<float>;
  return NeighbourPairs(LoadN(from, n), LoadN(from + kL, n - kL),
                        std::make_integer_sequence<int, kL>());
}

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
  const int64_t words = Words(from.depth, WeightFormat::kBFloat16Pairs);
  const auto row = [&](int64_t k) {
    return LoadN(from.data + k * from.row_stride,
                 k < from.depth ? from.width : 0);
  };
  for (int64_t k = 0; from.column_stride == 1 && k < words; ++k) {
    Store<BFloat16Pair>(Pairs(row(2 * k), row(2 * k + 1)), packed + k * stride);
  }
  for (int64_t k = 0; from.column_stride != 1 && k < words; k += kL) {
    VecT<BFloat16Pair> square[kL] = {};
    for (int64_t n = 0; n < from.width; ++n) {
      square[n] = LoadPairs(from.data + n * from.column_stride + 2 * k,
                            from.depth - 2 * k);
    }
    Transpose(square);
    for (int64_t r = 0; r < Min(kL, words - k); ++r) {
      Store<BFloat16Pair>(square[r], packed + (k + r) * stride);
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

// Stores a vector as elements u, u + 1, ... of a row of `size` elements,
// rounded to pairs. The last vector fills the row's last words with zeros: what
// lies there may be NaN, which times the zero of a missing weight is NaN.
TF_LSTM_OPS_INLINE void StorePairs(VecT<float> v, float* row, int64_t u,
                                   int64_t size) {
  auto* to = reinterpret_cast<BFloat16*>(row);
  const int64_t end = 2 * Words(size, WeightFormat::kBFloat16Pairs);
  StoreN(v, to + u, size - u);
  if (u + kLanes<float> < size || size == end) return;
  std::memset(to + size, 0, (end - size) * sizeof *to);
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_PACK_H_
