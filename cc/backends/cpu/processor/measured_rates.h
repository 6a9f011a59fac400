// The rates of this processor that depend on its caches.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_MEASURED_RATES_H_
#define TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_MEASURED_RATES_H_

#include "backends/cpu/plan/cost.h"

namespace tf_lstm_ops::cpu {

// The default rates, with the rate of multiply-adds and the rates at which a
// thread reads its L2 cache and the shared cache measured on this processor.
// The first call measures for about two milliseconds. Where there is no memory
// for that, the rates keep their defaults.
const Rates& MeasuredRates();

// The rates for weights of so many bytes. Where these stay in an L2 cache, they
// are the defaults, so that a small model does not wait for the measurement.
// `speed` is how much faster multiply-adds are than those of float vectors.
Rates RatesFor(int64_t weight_bytes, double speed = 1);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_PROCESSOR_MEASURED_RATES_H_
