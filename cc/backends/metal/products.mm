#include "backends/metal/products.h"

namespace tf_lstm_ops::metal {
namespace {

// [n,B,K] as [n*B,K].
Value Flat(const Value& rows) {
  if (rows.is_scalar()) return rows;
  const Extents shape = rows.shape();
  return Reshape(rows, {shape[0] * shape[1], shape[2]});
}

// [n*B,K] with the first two dimensions of `like`.
Value Unflat(const Value& rows, const Value& like) {
  if (rows.is_scalar()) return rows;
  return Reshape(rows, {like.dim(0), like.dim(1), rows.dim(1)});
}

// Number of different sets of multipliers.
int64_t Groups(const Value& dropout) { return dropout.is_scalar() ? 1 : dropout.dim(0); }

// The block of gate g along the last axis.
Value Gate(const Value& all, int64_t g, int64_t groups) {
  if (all.is_scalar()) return all;
  const int axis = static_cast<int>(all.shape().size()) - 1;
  const int64_t width = all.dim(axis) / groups;
  return Slice(all, axis, g * width, width);
}

Value Multiplier(const Value& dropout, int64_t g) { return Slice(dropout, 0, g, 1); }

}  // namespace

Value Product(const Value& rows, const Value& matrix, const Value& dropout) {
  if (rows.is(0)) return 0;
  Values gates;
  const int64_t groups = Groups(dropout);
  for (int64_t g = 0; g < groups; ++g) {
    const Value dropped = rows * Multiplier(dropout, g);
    gates.push_back(Unflat(MatMul(Flat(dropped), Gate(matrix, g, groups)), rows));
  }
  return Concat(gates, 2);
}

Value RowsGrad(const Value& z_grad, const Value& matrix, const Value& dropout) {
  Value sum;
  const int64_t groups = Groups(dropout);
  for (int64_t g = 0; g < groups; ++g) {
    const Value dropped_grad =
        Unflat(MatMul(Flat(Gate(z_grad, g, groups)), Transposed(Gate(matrix, g, groups))), z_grad);
    sum = sum + dropped_grad * Multiplier(dropout, g);
  }
  return sum;
}

Value MatrixGrad(const Value& rows, const Value& z_grad, const Value& dropout) {
  if (rows.is(0) || z_grad.is(0)) return 0;
  Values gates;
  const int64_t groups = Groups(dropout);
  for (int64_t g = 0; g < groups; ++g) {
    const Value dropped = rows * Multiplier(dropout, g);
    gates.push_back(MatMul(Transposed(Flat(dropped)), Flat(Gate(z_grad, g, groups))));
  }
  return Concat(gates, 1);
}

}  // namespace tf_lstm_ops::metal
