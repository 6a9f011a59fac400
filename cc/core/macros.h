#ifndef TF_LSTM_OPS_CORE_MACROS_H_
#define TF_LSTM_OPS_CORE_MACROS_H_

// Of functions that device code has too. No file is compiled for both at once.
#ifdef __CUDACC__
#define TF_LSTM_OPS_DEVICE __device__
#else
#define TF_LSTM_OPS_DEVICE
#endif

#define TF_LSTM_OPS_INLINE \
  TF_LSTM_OPS_DEVICE inline __attribute__((always_inline))

#endif  // TF_LSTM_OPS_CORE_MACROS_H_
