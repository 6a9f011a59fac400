#include "backends/cpu/simd/backward.h"

#include "backends/cpu/simd/passes.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template void RunPasses(BackwardPass<float>* const*, int, int);
#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
template void RunPasses(BackwardPass<double>* const*, int, int);
#endif

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
