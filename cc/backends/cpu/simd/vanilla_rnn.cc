#include "backends/cpu/simd/passes.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

TF_LSTM_OPS_CELL(, TanhCell);
TF_LSTM_OPS_CELL(, ReluCell);

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
