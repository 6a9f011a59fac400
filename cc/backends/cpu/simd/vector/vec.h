// Vec<T>: a SIMD vector of the instruction set that this file is compiled for,
// with the few operations that plain operators do not give.
//
// Contraction is off in the whole build, so a product and a sum are fused only
// where Fma says so, and every instruction set with a fused multiply-add
// returns the same bits.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_VEC_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_VEC_H_

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/float16.h"
#include "core/macros.h"

// Each instruction set has a namespace of its own. Without it, the linker would
// keep one copy of an inline function for all instruction sets.
namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

template <class T>
struct Vec {
  typedef T V __attribute__((vector_size(kVectorBytes)));
  using Lane = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef Lane Int __attribute__((vector_size(kVectorBytes)));
};

// Two neighbouring factors of a dot product, the first in the lower half.
struct BFloat16Pair {
  uint32_t bits;
};

template <>
struct Vec<BFloat16Pair> {
  typedef uint32_t V __attribute__((vector_size(kVectorBytes)));
};

// Elements of bfloat16 are computed with as float.
template <>
struct Vec<BFloat16> : Vec<float> {};

// Whether this instruction set multiplies pairs of bfloat16 with pairs, and
// whether by tiles, see tiles.h. Otherwise pairs are widened to float.
#if defined(TF_LSTM_OPS_TILES)
constexpr bool kDotsPairs = true, kTiles = true;
#elif defined(TF_LSTM_OPS_DOTS_BFLOAT16)
constexpr bool kDotsPairs = true, kTiles = false;
#else
constexpr bool kDotsPairs = false, kTiles = false;
#endif

template <class T>
constexpr int kLanes =
    kVectorBytes / (std::is_same_v<T, BFloat16> ? 4 : int{sizeof(T)});

template <class T>
using VecT = typename Vec<T>::V;

template <class T>
TF_LSTM_OPS_INLINE VecT<T> Broadcast(T value) {
  return value - VecT<T>{};  // x - 0 is x, also for -0
}

TF_LSTM_OPS_INLINE VecT<BFloat16Pair> Broadcast(BFloat16Pair value) {
  return value.bits - VecT<BFloat16Pair>{};
}

template <class T>
TF_LSTM_OPS_INLINE VecT<T> Load(const T* from) {
  VecT<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
TF_LSTM_OPS_INLINE void Store(VecT<T> v, T* to) {
  std::memcpy(to, &v, sizeof v);
}

// The elements of pairs as float, exactly.
TF_LSTM_OPS_INLINE VecT<float> First(VecT<BFloat16Pair> pairs) {
  return reinterpret_cast<VecT<float>>(pairs << 16);
}
TF_LSTM_OPS_INLINE VecT<float> Second(VecT<BFloat16Pair> pairs) {
  return reinterpret_cast<VecT<float>>(pairs & 0xffff0000u);
}

// The bits of each lane as bfloat16.
TF_LSTM_OPS_INLINE VecT<BFloat16Pair> ToBFloat16(VecT<float> v) {
  return BFloat16::Round(reinterpret_cast<VecT<BFloat16Pair>>(v));
}

typedef uint16_t HalfVector __attribute__((vector_size(kVectorBytes / 2)));

TF_LSTM_OPS_INLINE VecT<float> Load(const BFloat16* from) {
  HalfVector bits;
  std::memcpy(&bits, from, sizeof bits);
  return First(__builtin_convertvector(bits, VecT<BFloat16Pair>));
}

TF_LSTM_OPS_INLINE void Store(VecT<float> v, BFloat16* to) {
  const auto bits = __builtin_convertvector(ToBFloat16(v), HalfVector);
  std::memcpy(to, &bits, sizeof bits);
}

// LoadN and StoreN of fewer lanes than all.
#if defined(__AVX512F__)
TF_LSTM_OPS_INLINE unsigned MaskOf(int64_t n) {
  return n <= 0 ? 0 : (1u << n) - 1;
}
TF_LSTM_OPS_INLINE VecT<float> LoadSome(const float* from, int64_t n) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(MaskOf(n)), from);
}
TF_LSTM_OPS_INLINE VecT<double> LoadSome(const double* from, int64_t n) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>(MaskOf(n)), from);
}
TF_LSTM_OPS_INLINE void StoreSome(VecT<float> v, float* to, int64_t n) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(MaskOf(n)), v);
}
TF_LSTM_OPS_INLINE void StoreSome(VecT<double> v, double* to, int64_t n) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>(MaskOf(n)), v);
}
#elif defined(__AVX2__)
TF_LSTM_OPS_INLINE VecT<float> LoadSome(const float* from, int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i count = _mm256_set1_epi32(static_cast<int>(n));
  return _mm256_maskload_ps(from, _mm256_cmpgt_epi32(count, lane));
}
// In halves: a masked store is slow on AMD's processors.
TF_LSTM_OPS_INLINE void StoreSome(VecT<float> v, float* to, int64_t n) {
  if (n <= 0) return;
  __m128 part = _mm256_castps256_ps128(v);
  if (n & 4) {
    _mm_storeu_ps(to, part);
    part = _mm256_extractf128_ps(v, 1);
    to += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(to), part);
    part = _mm_movehl_ps(part, part);
    to += 2;
  }
  if (n & 1) _mm_store_ss(to, part);
}
#endif
// Not inlined: the kernels have dozens of calls, most of which never run.
template <class T>
TF_LSTM_OPS_NOINLINE VecT<T> LoadSome(const T* from, int64_t n) {
  T lanes[kLanes<T>] = {};
  for (int k = 0; k < kLanes<T>; ++k) {
    if (k < n) lanes[k] = from[k];
  }
  return Load(lanes);
}
template <class T>
TF_LSTM_OPS_NOINLINE void StoreSome(VecT<T> v, T* to, int64_t n) {
  T lanes[kLanes<T>];
  Store(v, lanes);
  for (int k = 0; k < kLanes<T>; ++k) {
    if (k < n) std::memcpy(to + k, &lanes[k], sizeof(T));
  }
}

// The first n lanes; the others are zero.
template <class T>
TF_LSTM_OPS_INLINE VecT<T> LoadN(const T* from, int64_t n) {
  return n >= kLanes<T> ? Load(from) : LoadSome(from, n);
}

template <class T>
TF_LSTM_OPS_INLINE void StoreN(VecT<T> v, T* to, int64_t n) {
  n >= kLanes<T> ? Store(v, to) : StoreSome(v, to, n);
}

// Returns the lanes k... of the concatenation of `a` and `b`.
template <class T, int... k>
TF_LSTM_OPS_INLINE VecT<T> Shuffle(VecT<T> a, VecT<T> b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, k...);
#else
  return __builtin_shuffle(a, b, typename Vec<T>::Int{k...});
#endif
}

// For all k with (k & kSize) != 0: exchanges lane k of `a` with lane k - kSize
// of `b`.
template <class T, int kSize, int... k>
TF_LSTM_OPS_INLINE void ExchangeLanes(VecT<T>* a, VecT<T>* b,
                                      std::integer_sequence<int, k...>) {
  constexpr int kL = kLanes<T>;
  const VecT<T> first = *a, second = *b;
  *a = Shuffle<T, ((k & kSize) ? kL + k - kSize : k)...>(first, second);
  *b = Shuffle<T, ((k & kSize) ? kL + k : k + kSize)...>(first, second);
}

// Transposes each square of 2 kSize rows and columns. It exchanges the two
// squares of kSize rows and columns off the diagonal, then transposes the
// squares of half that size.
template <int kSize, class V, int kL>
TF_LSTM_OPS_INLINE void TransposeSquares(V (&rows)[kL]) {
  using T = std::remove_reference_t<decltype(rows[0][0])>;
  if constexpr (kSize > 0) {
    for (int r = 0; r < kL; ++r) {
      if (r & kSize) continue;
      ExchangeLanes<T, kSize>(&rows[r], &rows[r + kSize],
                              std::make_integer_sequence<int, kL>());
    }
    TransposeSquares<kSize / 2>(rows);
  }
}
template <class V, int kL>
TF_LSTM_OPS_INLINE void Transpose(V (&rows)[kL]) {
  TransposeSquares<kL / 2>(rows);
}

// Without this, the compiler may load a vector from memory at each of its uses.
template <class V>
TF_LSTM_OPS_INLINE void KeepInRegister(V* v) {
#if defined(__x86_64__)
  asm("" : "+v"(*v));
#elif defined(__aarch64__)
  asm("" : "+w"(*v));
#endif
}

// Prefetch hints; any address is allowed. GCC removes calls of a function that
// only prefetches, since it finds no effect in it. The empty asm statements are
// an effect.
TF_LSTM_OPS_INLINE void PrefetchToRead(const void* address) {
  __builtin_prefetch(address, 0, 3);
  asm volatile("");
}
template <class T>
TF_LSTM_OPS_INLINE void PrefetchToRead(const T* row, int64_t size) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t k = 0; k < size; k += kLine) PrefetchToRead(row + k);
}
TF_LSTM_OPS_INLINE void PrefetchToWrite(const void* address) {
  __builtin_prefetch(address, 1, 3);
  asm volatile("");
}

// a * b + c, rounded once where the instruction set can.
TF_LSTM_OPS_INLINE VecT<float> Fma(VecT<float> a, VecT<float> b,
                                   VecT<float> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}

TF_LSTM_OPS_INLINE VecT<double> Fma(VecT<double> a, VecT<double> b,
                                    VecT<double> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#elif defined(__aarch64__)
  return vfmaq_f64(c, a, b);
#else
  return a * b + c;
#endif
}

// x, or a bound that it exceeds. NaN in x is passed on. Conditional expressions
// become comparisons and blends with AVX-512: N256 T120 I7 H32 took 1.05 of the
// time.
TF_LSTM_OPS_INLINE VecT<float> AtLeast(float least, VecT<float> x) {
  const VecT<float> low = Broadcast(least);
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xffff, low, x);
#elif defined(__AVX2__)
  return _mm256_max_ps(low, x);
#elif defined(__x86_64__)
  return _mm_max_ps(low, x);
#else
  return vmaxq_f32(x, low);
#endif
}
TF_LSTM_OPS_INLINE VecT<float> AtMost(float most, VecT<float> x) {
  const VecT<float> high = Broadcast(most);
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(0xffff, high, x);
#elif defined(__AVX2__)
  return _mm256_min_ps(high, x);
#elif defined(__x86_64__)
  return _mm_min_ps(high, x);
#else
  return vminq_f32(x, high);
#endif
}
TF_LSTM_OPS_INLINE VecT<float> Clamp(VecT<float> x, float least, float most) {
  return AtMost(most, AtLeast(least, x));
}

// c plus the products of both elements of each pair.
TF_LSTM_OPS_INLINE VecT<float> Fma(VecT<BFloat16Pair> a, VecT<BFloat16Pair> b,
                                   VecT<float> c) {
#if defined(__AVX512BF16__)
  return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a),
                          reinterpret_cast<__m512bh>(b));
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
  return vbfdotq_f32(c, vreinterpretq_bf16_u32(a), vreinterpretq_bf16_u32(b));
#else
  return Fma(Second(a), Second(b), Fma(First(a), First(b), c));
#endif
}

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_VECTOR_VEC_H_
