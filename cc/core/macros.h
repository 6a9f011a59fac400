// Attributes of functions that host code and device code share.
#ifndef TF_LSTM_OPS_CORE_MACROS_H_
#define TF_LSTM_OPS_CORE_MACROS_H_

// Marks functions that CUDA device code also calls. The host compiler and the
// device compiler compile them separately, each for its own side only.
#ifdef __CUDACC__
#define TF_LSTM_OPS_DEVICE __device__
#else
#define TF_LSTM_OPS_DEVICE
#endif

// TF_LSTM_OPS_DEVICE, and always inlined.
#define TF_LSTM_OPS_INLINE \
  TF_LSTM_OPS_DEVICE inline __attribute__((always_inline))

// The same for a lambda, behind its parameters.
#define TF_LSTM_OPS_LAMBDA __attribute__((always_inline))

// Never inlined by the host compiler.
#ifdef __CUDACC__
#define TF_LSTM_OPS_NOINLINE TF_LSTM_OPS_DEVICE
#else
#define TF_LSTM_OPS_NOINLINE __attribute__((noinline))
#endif

#endif  // TF_LSTM_OPS_CORE_MACROS_H_
