#include "backends/cpu/simd/passes.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

TF_LSTM_OPS_CELL(, CustomLstmCell);

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
