// Replaces the library that asks TensorFlow for its stream, since the tests'
// device has no CUDA stream.
#include "backends/cuda/api/driver.h"

struct CUstream_st {};

extern "C" void* tf_lstm_ops_cuda_stream(void*) {
  static CUstream_st stream;
  return &stream;
}
