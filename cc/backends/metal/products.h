// Products of rows with the weights of all gates, and their gradients.
//
// rows [n, B, K]; matrix [K, G*H]; the product z [n, B, G*H]. `dropout`
// multiplies the rows: [G, B, K] for each gate, or [1, B, K] or the scalar 1
// for all gates.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_

#include "backends/metal/value.h"

namespace tf_lstm_ops::metal {

Value Product(const Value& rows, const Value& matrix, const Value& dropout);
Value RowsGrad(const Value& z_grad, const Value& matrix, const Value& dropout);
Value MatrixGrad(const Value& rows, const Value& z_grad, const Value& dropout);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_
