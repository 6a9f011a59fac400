// In place of the library that asks TensorFlow for its stream: the device of
// the tests has none of CUDA's.
#include "backends/cuda/api/driver.h"

struct CUstream_st {};

extern "C" void* tf_lstm_ops_cuda_stream(void*) {
  static CUstream_st stream;
  return &stream;
}
