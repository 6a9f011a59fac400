// The fake libcudnn.so.9: errors, the handle and the descriptors.
#include "cudnn_descriptors.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>

using fake::Fail;
using fake::SizeOf;

namespace {

std::mutex mutex;
std::string last_error;  // guarded by mutex

template <class T>
cudnnStatus_t Create(T** descriptor) {
  CHECK_PARAM(descriptor != nullptr);
  *descriptor = new T();
  return CUDNN_STATUS_SUCCESS;
}

template <class T>
cudnnStatus_t Destroy(T* descriptor) {
  CHECK_PARAM(descriptor != nullptr);
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

namespace fake {

cudnnStatus_t Fail(cudnnStatus_t status, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard<std::mutex> lock(mutex);
  last_error = text;
  return status;
}

}  // namespace fake

extern "C" {

size_t cudnnGetVersion() { return 90300; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS"
                                        : "CUDNN_STATUS_BAD_PARAM";
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::snprintf(message, max_size, "%s", last_error.c_str());
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  CHECK_PARAM(handle != nullptr);
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream_st* stream) {
  CHECK_PARAM(handle != nullptr);
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return Create(tensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return Destroy(tensor);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor,
                                         cudnnDataType_t type, int rank,
                                         const int dims[],
                                         const int strides[]) {
  CHECK_PARAM(tensor && rank >= 3 && dims && strides);
  int stride = 1;
  for (int k = rank - 1; k >= 0; --k) {
    CHECK_PARAM(dims[k] > 0 && strides[k] == stride);
    stride *= dims[k];
  }
  tensor->type = type;
  tensor->dims.assign(dims, dims + rank);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropout) {
  return Create(dropout);
}
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropout) {
  return Destroy(dropout);
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout,
                                        cudnnHandle_t handle, float probability,
                                        void* states, size_t states_size,
                                        unsigned long long) {
  CHECK_PARAM(dropout && handle != nullptr);
  // The package calls cuDNN without dropout.
  CHECK_PARAM(probability == 0 && states == nullptr && states_size == 0);
  dropout->is_set = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnn) {
  return Create(rnn);
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnn) {
  return Destroy(rnn);
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t mode,
    cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
    cudnnRNNInputMode_t input_mode, cudnnDataType_t type,
    cudnnDataType_t precision, cudnnMathType_t math, int32_t input,
    int32_t hidden, int32_t projection, int32_t layers,
    cudnnDropoutDescriptor_t dropout, uint32_t flags) {
  CHECK_PARAM(rnn && dropout && dropout->is_set);
  CHECK_PARAM(bias == CUDNN_RNN_DOUBLE_BIAS);
  CHECK_PARAM(mode >= CUDNN_RNN_RELU && mode <= CUDNN_GRU);
  CHECK_PARAM(type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE ||
              type == CUDNN_DATA_HALF);
  CHECK_PARAM(precision == (type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                                                      : CUDNN_DATA_FLOAT));
  CHECK_PARAM(type != CUDNN_DATA_HALF || math == CUDNN_TENSOR_OP_MATH);
  CHECK_PARAM(input > 0 && hidden > 0 && layers > 0);
  CHECK_PARAM(projection > 0 && projection <= hidden);
  CHECK_PARAM(projection == hidden || mode == CUDNN_LSTM);
  CHECK_PARAM(input_mode == CUDNN_LINEAR_INPUT || input == hidden);
  CHECK_PARAM(algorithm == CUDNN_RNN_ALGO_STANDARD);
  CHECK_PARAM(flags == CUDNN_RNN_PADDED_IO_ENABLED);
  rnn->is_set = true;
  rnn->type = type;
  rnn->math = math;
  rnn->model = {mode,      input_mode == CUDNN_SKIP_INPUT,
                layers,    direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                input,     hidden,
                projection};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* data) {
  return Create(data);
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t data) {
  return Destroy(data);
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t data,
                                        cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int time,
                                        int batch, int width,
                                        const int lengths[], void* fill) {
  CHECK_PARAM(data && lengths != nullptr);
  CHECK_PARAM(time > 0 && batch > 0 && width > 0);
  for (int b = 0; b < batch; ++b) {
    CHECK_PARAM(lengths[b] > 0 && lengths[b] <= time);
  }
  data->is_set = true;
  data->type = type;
  data->layout = layout;
  data->time = time;
  data->batch = batch;
  data->width = width;
  data->lengths.assign(lengths, lengths + batch);
  data->fill.clear();
  const auto* bytes = static_cast<const char*>(fill);
  if (bytes) data->fill.assign(bytes, bytes + SizeOf(type));
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
