#ifndef TF_LSTM_OPS_CORE_MACROS_H_
#define TF_LSTM_OPS_CORE_MACROS_H_

#define TF_LSTM_OPS_INLINE inline __attribute__((always_inline))

#endif  // TF_LSTM_OPS_CORE_MACROS_H_
