// The maximum, the average and the sum of steps, for pooling layers.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_POOL_STEPS_H_
#define TF_LSTM_OPS_SESSION_LAYERS_POOL_STEPS_H_

#include <cstdint>

namespace tf_lstm_ops::session {

// y [channels] = the largest elements of x [steps, channels]; minus infinity
// without steps.
void MaxOfSteps(const float* x, int64_t steps, int64_t channels, float* y);

// y [channels] = the average of the steps of x [steps, channels] that are
// valid; null: of all. NaN without steps.
void MeanOfSteps(const float* x, int64_t steps, int64_t channels,
                 const bool* valid, float* y);

// y [channels] = the sums of the steps of x [steps, channels].
void SumOfSteps(const float* x, int64_t steps, int64_t channels, float* y);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_POOL_STEPS_H_
