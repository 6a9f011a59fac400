#include "backends/cpu/simd/forward.h"

#include "backends/cpu/simd/passes.h"

namespace tf_lstm_ops::TF_LSTM_OPS_SIMD {

template void RunPasses(ForwardPass<float>* const*, int, int);
#if !defined(TF_LSTM_OPS_DOTS_BFLOAT16)
template void RunPasses(ForwardPass<double>* const*, int, int);
#endif

}  // namespace tf_lstm_ops::TF_LSTM_OPS_SIMD
