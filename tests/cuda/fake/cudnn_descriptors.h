// The descriptors of the fake libcudnn.so.9, and the checks of its functions'
// arguments. A function that refuses its arguments records the reason for
// cudnnGetLastErrorString.
#ifndef TF_LSTM_OPS_TESTS_CUDA_FAKE_CUDNN_DESCRIPTORS_H_
#define TF_LSTM_OPS_TESTS_CUDA_FAKE_CUDNN_DESCRIPTORS_H_

#include <cstdint>
#include <vector>

#include "backends/cuda/api/cudnn.h"
#include "rnn.h"

struct cudnnContext {
  CUstream_st* stream = nullptr;
};
struct cudnnTensorStruct {
  cudnnDataType_t type;
  std::vector<int> dims;
};
struct cudnnDropoutStruct {
  bool is_set = false;
};
struct cudnnRNNStruct {
  bool is_set = false;
  cudnnDataType_t type;
  cudnnMathType_t math;
  fake::Model model;
};
struct cudnnRNNDataStruct {
  bool is_set = false;
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int64_t time, batch, width;
  std::vector<int> lengths;
  std::vector<char> fill;  // one element, or empty
};

namespace fake {

// Records the message. Returns `status`.
__attribute__((format(printf, 2, 3))) cudnnStatus_t Fail(cudnnStatus_t status,
                                                         const char* format,
                                                         ...);

}  // namespace fake

#define CHECK_PARAM(condition)                                              \
  do {                                                                      \
    if (!(condition)) {                                                     \
      return fake::Fail(CUDNN_STATUS_BAD_PARAM, "%s: failed: %s", __func__, \
                        #condition);                                        \
    }                                                                       \
  } while (false)

#endif  // TF_LSTM_OPS_TESTS_CUDA_FAKE_CUDNN_DESCRIPTORS_H_
