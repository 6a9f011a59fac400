// Products of rows with the weights of all gates, and their gradients.
//
// For each gate g, with the columns M_g of its block in matrix [K, G*H]:
//
//   z_g = (rows * dropout_g) M_g
//
// rows [n, B, K], z [n, B, G*H]. dropout is [G, B, K], or [1, B, K] or the
// scalar 1 for all gates. Product returns z. RowsGrad and MatrixGrad return the
// gradients with respect to rows and matrix.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_

#include "backends/metal/value.h"

namespace tf_lstm_ops::metal {

Value Product(const Value& rows, const Value& matrix, const Value& dropout);
Value RowsGrad(const Value& z_grad, const Value& matrix, const Value& dropout);
Value MatrixGrad(const Value& rows, const Value& z_grad, const Value& dropout);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_
