// TransposedProduct: the product of dz with the transposed weights of gates.
// With the input weights it is dx, with the recurrent weights dh_prev.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_TRANSPOSED_PRODUCT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_TRANSPOSED_PRODUCT_H_

#include "backends/cpu/backward_engine.h"
#include "backends/cpu/simd/vector/gemm.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

// Rows [begin, end) of dz and of a product. Row `begin` of dz is at `z_grad`,
// [pre-activations, H], or as pairs half of that; the next row is `z_stride`
// elements behind.
template <class T>
struct TransposedRows {
  int64_t begin, end;
  const T* z_grad;
  int64_t z_stride;
  T* to = nullptr;  // [., width]
  int64_t to_stride = 0;
  bool to_input = false;  // rows of `to` are those of x, else of the batch
};

template <class T>
struct TransposedProduct {
  static constexpr int kL = kLanes<T>;

  const EngineBackward<T>& args;
  const GateMatrices<const T>& weights;
  // Dropout multipliers of the product, [blocks, B, width], or null.
  const T* keep;
  int64_t width;     // columns of the product: I or P
  int first, parts;  // pre-activations
  int64_t
      columns;  // of a packed group, a multiple of kL, at most kProductColumns
  WeightFormat format;

  int64_t cell() const { return args.config.cell_size; }
  int Block(int part) const { return args.config.gate_order.block[part]; }
  // The words of a gate in a row of dz.
  int64_t GateWords() const { return Words(cell(), format); }
  int64_t PackedSize() const {
    return parts * RoundUpToLanes<T>(width) * GateWords();
  }

  // Packs the group of columns from `begin` on: [gates, H, vectors of columns,
  // lanes]; as pairs, half as many rows.
  void Pack(int64_t begin, T* packed) const {
    const int64_t end = Min(begin + columns, width);
    if (begin >= end) return;
    T* to = packed + begin * parts * GateWords();
    for (int p = first; p < first + parts; ++p) {
      weights.Read(Block(p), [&](const auto* data) {
        PackGroup(PackedFrom{data, weights.column_stride, weights.row_stride,
                             cell(), width},
                  begin, end, to, format);
      });
      to += GateWords() * RoundUpToLanes<T>(end - begin);
    }
  }

  // to[target] = sum over the gates of keep * (dz W^T), for the group of
  // columns from `begin` on. The sum accumulates in place, kDepth rows of the
  // weights at a time, so that these stay in the cache for all rows. Without
  // dropout the gates are one product, since their dz and weights are
  // contiguous.
  void Multiply(const TransposedRows<T>& rows, const T* packed,
                int64_t begin) const {
    const int sets = keep ? parts : 1;
    const int64_t depth = GateWords() * parts / sets;
    const int64_t end = Min(begin + columns, width);
    if (begin >= end) return;
    const T* from = packed + begin * parts * GateWords();
    for (int part = first; part < first + sets; ++part) {
      for (int64_t k = 0; k < depth; k += kDepth) {
        const int64_t words = Min(kDepth, depth - k);
        const WeightColumns<T> w = {
            from, RoundsFactors(format) ? 2 * words : words, format};
        const ProductRange range = {rows.begin, rows.end, end - begin,
                                    part > first || k > 0};
        MultiplyPart(rows, w, range, part, k, begin);
        from += words * RoundUpToLanes<T>(end - begin);
      }
    }
  }

 private:
  // The rows of W^T from word k of a part on.
  void MultiplyPart(const TransposedRows<T>& of, const WeightColumns<T>& w,
                    const ProductRange& range, int part, int64_t k,
                    int64_t begin) const {
    const T* z = of.z_grad + part * GateWords() + k;
    const PackedRow at = args.valid->At(of.begin);
    const int64_t first = Target(of, at);
    const int64_t inputs = args.valid->InputStride(at, of.end - of.begin);
    const int64_t stride = of.to_input ? inputs : Min(inputs, 1);
    WithConstant<kColumns>(CeilDiv(range.columns, kL), [&](auto vectors) {
      MultiplyBand<decltype(vectors)::value>(
          [&](int64_t e) { return z + (e - of.begin) * of.z_stride; }, w, range,
          [&](int64_t e) {
            const int64_t row = stride > 0 ? first + (e - of.begin) * stride
                                           : Target(of, args.valid->At(e));
            return of.to + row * of.to_stride + begin;
          },
          [&](int64_t e) { return Kept(part, e, begin); });
    });
  }

  static int64_t Target(const TransposedRows<T>& of, const PackedRow& at) {
    return of.to_input ? at.input : at.batch;
  }

  // The multipliers of a row of the product from a column on, or null.
  const T* Kept(int part, int64_t e, int64_t column) const {
    if (!keep) return nullptr;
    const PackedSequence& valid = *args.valid;
    const int64_t row = Block(part) * valid.batch + valid.At(e).batch;
    return keep + row * width + column;
  }
};

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD

#endif  // TF_LSTM_OPS_BACKENDS_CPU_SIMD_BACKWARD_TRANSPOSED_PRODUCT_H_
