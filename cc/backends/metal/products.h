// Products of rows with the weights of all gates, and their gradients.
//
// rows [n,B,K]; matrix [K,G*H]; the product [n,B,G*H]. `dropout` multiplies the
// rows, for each gate by itself, [G,B,K], or for all alike, [1,B,K] or 1.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_
#define TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_

#include "backends/metal/value.h"

namespace tf_lstm_ops::metal {

Value Product(const Value& rows, const Value& matrix, const Value& dropout);
Value RowsGradient(const Value& dz, const Value& matrix, const Value& dropout);
Value MatrixGradient(const Value& rows, const Value& dz, const Value& dropout);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_PRODUCTS_H_
