// Block<T, R>: a vector of units in each of R rows, as the value of a cell's
// equations.
//
// The equations of one row are one long chain of dependent operations. With
// several rows at a time, each function runs on independent vectors.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BLOCK_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BLOCK_H_

#include "backends/cpu/simd/vec.h"
#include "backends/cpu/simd/vec_math.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template <class T, int R>
struct Block {
  VecT<T> row[R];

  Block() = default;  // not initialized; Block{} is zero
  // The same value in all elements. Implicit, so that 1 - x works.
  // NOLINTNEXTLINE(google-explicit-constructor)
  TF_LSTM_OPS_INLINE Block(T value) : Block(Broadcast(value)) {}
  // The same vector in all rows.
  TF_LSTM_OPS_INLINE explicit Block(VecT<T> vector) {
    for (VecT<T>& v : row) v = vector;
  }

  // f(row r of each argument) for each r.
  template <class F, class... Blocks>
  static TF_LSTM_OPS_INLINE Block Map(const F& f, const Blocks&... x) {
    Block y;
    for (int r = 0; r < R; ++r) y.row[r] = f(x.row[r]...);
    return y;
  }

  friend TF_LSTM_OPS_INLINE Block operator+(const Block& a, const Block& b) {
    return Map([](auto x, auto y) { return x + y; }, a, b);
  }
  friend TF_LSTM_OPS_INLINE Block operator-(const Block& a, const Block& b) {
    return Map([](auto x, auto y) { return x - y; }, a, b);
  }
  friend TF_LSTM_OPS_INLINE Block operator*(const Block& a, const Block& b) {
    return Map([](auto x, auto y) { return x * y; }, a, b);
  }
  friend TF_LSTM_OPS_INLINE Block operator/(const Block& a, const Block& b) {
    return Map([](auto x, auto y) { return x / y; }, a, b);
  }
  friend TF_LSTM_OPS_INLINE Block operator-(const Block& a) {
    return Map([](auto x) { return -x; }, a);
  }
};

// VecMath on blocks: the Math of a cell.
template <class T, int R>
struct BlockMath {
  using Value = Block<T, R>;
  using Row = VecMath<T>;

  static TF_LSTM_OPS_INLINE Value Sigmoid(const Value& x) {
    return Value::Map([](auto v) { return Row::Sigmoid(v); }, x);
  }
  static TF_LSTM_OPS_INLINE Value Tanh(const Value& x) {
    return Value::Map([](auto v) { return Row::Tanh(v); }, x);
  }
  static TF_LSTM_OPS_INLINE Value Min(const Value& a, const Value& b) {
    return Value::Map([](auto x, auto y) { return Row::Min(x, y); }, a, b);
  }
  static TF_LSTM_OPS_INLINE Value Max(const Value& a, const Value& b) {
    return Value::Map([](auto x, auto y) { return Row::Max(x, y); }, a, b);
  }
  static TF_LSTM_OPS_INLINE Value IfPositive(const Value& condition,
                                             const Value& yes,
                                             const Value& no) {
    return Value::Map(
        [](auto c, auto y, auto n) { return Row::IfPositive(c, y, n); },
        condition, yes, no);
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BLOCK_H_
