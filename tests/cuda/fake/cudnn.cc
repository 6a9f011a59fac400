// A fake libcudnn.so.9 in host memory. It checks descriptors, sizes and the
// order of calls. Values that the documentation leaves undefined are NaN.
//
// Environment variables:
//   FAKE_CUDNN_LOG          a file that gets a line for each pass
//   FAKE_CUDNN_SCATTERED=1  another layout of the weight space than documented
//   FAKE_FASTEST            the number of the one algorithm that is fast
//   FAKE_CUDNN_WRONG        the number of an algorithm whose outputs are zeros
//   FAKE_CUDNN_FAILS        the number of an algorithm whose passes fail
#include "backends/cuda/api/cudnn.h"

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "rnn.h"

using fake::Batch;
using fake::Elements;
using fake::Model;
using fake::Rnn;
using fake::SizeOf;
using fake::WeightSpace;

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
  bool is_set = false, is_padded = false;
  cudnnRNNAlgo_t algorithm;
  cudnnDataType_t type;
  cudnnMathType_t math;
  int built_for = 0;
  Model model;
};
struct cudnnRNNDataStruct {
  bool is_set = false;
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int64_t time, batch, width;
  std::vector<int> lengths;
  std::vector<char> fill;  // one element, or empty
};

namespace {

constexpr int kPoison = 0xFF;  // NaN in every type
constexpr uint64_t kMagic = 0x7265736572766564;

std::mutex mutex;
std::string last_error;  // guarded by it
std::set<void*> live;    // descriptors

__attribute__((format(printf, 2, 3))) cudnnStatus_t Fail(cudnnStatus_t status,
                                                         const char* format,
                                                         ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard<std::mutex> lock(mutex);
  last_error = text;
  return status;
}

#define CHECK_PARAM(condition)                                        \
  do {                                                                \
    if (!(condition)) {                                               \
      return Fail(CUDNN_STATUS_BAD_PARAM, "%s: failed: %s", __func__, \
                  #condition);                                        \
    }                                                                 \
  } while (false)

template <class T>
cudnnStatus_t Create(T** descriptor) {
  CHECK_PARAM(descriptor != nullptr);
  *descriptor = new T();
  const std::lock_guard<std::mutex> lock(mutex);
  live.insert(*descriptor);
  return CUDNN_STATUS_SUCCESS;
}

bool IsLive(const void* descriptor) {
  const std::lock_guard<std::mutex> lock(mutex);
  return live.count(const_cast<void*>(descriptor)) > 0;
}

template <class T>
cudnnStatus_t Destroy(T* descriptor) {
  CHECK_PARAM(IsLive(descriptor));
  {
    const std::lock_guard<std::mutex> lock(mutex);
    live.erase(descriptor);
  }
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

bool Flag(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

WeightSpace Weights(const cudnnRNNStruct& rnn) {
  return {rnn.model, Flag("FAKE_CUDNN_SCATTERED")};
}

size_t WeightBytes(const cudnnRNNStruct& rnn) {
  return Weights(rnn).size() * SizeOf(rnn.type);
}

Batch BatchOf(const cudnnRNNDataStruct& data) {
  return {data.time, data.batch, data.lengths,
          data.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED};
}

// Sizes that differ from algorithm to algorithm, as cuDNN's do.
size_t ReserveBytes(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  return 2 * sizeof(uint64_t) + 64 * static_cast<size_t>(rnn.algorithm) +
         Rnn::TapeSize(rnn.model, BatchOf(x)) * sizeof(double);
}

size_t WorkspaceBytes(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  return 128 + 8 * x.batch * rnn.model.hidden;
}

// Whether there is this algorithm.
bool IsSupported(const cudnnRNNStruct& rnn) {
  if (rnn.algorithm == CUDNN_RNN_ALGO_STANDARD) return true;
  return rnn.type == CUDNN_DATA_HALF && !rnn.is_padded &&
         !rnn.model.is_projected() && rnn.model.layers == 1 &&
         rnn.model.hidden % 2 == 0;
}

bool IsState(const cudnnTensorStruct* tensor, const cudnnRNNStruct& rnn,
             const cudnnRNNDataStruct& x, int64_t width) {
  return IsLive(tensor) && tensor->type == rnn.type &&
         tensor->dims ==
             std::vector<int>{static_cast<int>(rnn.model.pseudo_layers()),
                              static_cast<int>(x.batch),
                              static_cast<int>(width)};
}

bool Overlap(const void* a, size_t a_size, const void* b, size_t b_size) {
  const auto *first = static_cast<const char*>(a),
             *second = static_cast<const char*>(b);
  return first < second + b_size && second < first + a_size;
}

// The arguments that all passes have.
struct Pass {
  cudnnHandle_t handle;
  cudnnRNNDescriptor_t rnn;
  const int32_t* lengths;
  cudnnRNNDataDescriptor_t x, y;
  cudnnTensorDescriptor_t h, c;
  size_t weights_size;
  const void* weights;
  size_t workspace_size;
  void* workspace;
  size_t reserve_size;
  void* reserve;
};

cudnnStatus_t CheckData(const Pass& p) {
  const cudnnRNNStruct& rnn = *p.rnn;
  CHECK_PARAM(IsLive(p.x) && p.x->is_set && IsLive(p.y) && p.y->is_set);
  CHECK_PARAM(p.x->type == rnn.type && p.y->type == rnn.type);
  CHECK_PARAM(p.x->layout == p.y->layout && p.x->time == p.y->time);
  CHECK_PARAM(p.x->batch == p.y->batch && p.x->lengths == p.y->lengths);
  CHECK_PARAM(p.x->width == rnn.model.input);
  CHECK_PARAM(p.y->width == rnn.model.output());
  CHECK_PARAM(p.lengths != nullptr);
  for (int64_t b = 0; b < p.x->batch; ++b) {
    CHECK_PARAM(p.lengths[b] == p.x->lengths[b]);
  }
  const bool is_packed = p.x->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  CHECK_PARAM(rnn.is_padded || is_packed);
  for (int64_t b = 1; b < p.x->batch; ++b) {
    CHECK_PARAM(!is_packed || p.x->lengths[b] == p.x->lengths[0]);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Check(const Pass& p, bool wants_reserve) {
  CHECK_PARAM(p.handle != nullptr && p.handle->stream != nullptr);
  CHECK_PARAM(IsLive(p.rnn) && p.rnn->is_set);
  const cudnnRNNStruct& rnn = *p.rnn;
  if (!IsSupported(rnn)) {
    return Fail(CUDNN_STATUS_NOT_SUPPORTED, "no algorithm %d for this",
                rnn.algorithm);
  }
  const char* failing = std::getenv("FAKE_CUDNN_FAILS");
  if (failing && std::atoi(failing) == rnn.algorithm) {
    return Fail(CUDNN_STATUS_EXECUTION_FAILED, "as FAKE_CUDNN_FAILS says");
  }
  if (const cudnnStatus_t status = CheckData(p)) return status;
  CHECK_PARAM(rnn.algorithm != CUDNN_RNN_ALGO_PERSIST_DYNAMIC ||
              rnn.built_for == p.x->batch);
  CHECK_PARAM(IsState(p.h, rnn, *p.x, rnn.model.projection));
  // The gradients of weights need no cell state.
  CHECK_PARAM(!p.c || IsState(p.c, rnn, *p.x, rnn.model.hidden));
  CHECK_PARAM(p.weights != nullptr && p.weights_size == WeightBytes(rnn));
  CHECK_PARAM(p.workspace && p.workspace_size >= WorkspaceBytes(rnn, *p.x));
  CHECK_PARAM(!wants_reserve ||
              (p.reserve && p.reserve_size >= ReserveBytes(rnn, *p.x)));
  CHECK_PARAM(!wants_reserve ||
              reinterpret_cast<uintptr_t>(p.reserve) % 16 == 0);
  CHECK_PARAM(!wants_reserve || !Overlap(p.workspace, p.workspace_size,
                                         p.reserve, p.reserve_size));
  std::memset(p.workspace, kPoison, p.workspace_size);
  return CUDNN_STATUS_SUCCESS;
}

void Log(const char* pass, const Pass& p, bool is_training) {
  const char* path = std::getenv("FAKE_CUDNN_LOG");
  std::FILE* file = path ? std::fopen(path, "a") : nullptr;
  if (!file) return;
  const Model& m = p.rnn->model;
  std::fprintf(
      file,
      R"({"pass": "%s", "training": %d, "algorithm": %d, "math": %d, "type": %d, "padded": %d, )"
      R"("layout": %d, "time": %d, "batch": %d, "layers": %d, "directions": %d, "input": %d, )"
      R"("hidden": %d, "projection": %d})"
      "\n",
      pass, is_training, p.rnn->algorithm, p.rnn->math, p.rnn->type,
      p.rnn->is_padded, p.x->layout, static_cast<int>(p.x->time),
      static_cast<int>(p.x->batch), static_cast<int>(m.layers),
      static_cast<int>(m.directions), static_cast<int>(m.input),
      static_cast<int>(m.hidden), static_cast<int>(m.projection));
  std::fclose(file);
}

void Delay(const cudnnRNNStruct& rnn) {
  const char* fastest = std::getenv("FAKE_FASTEST");
  if (!fastest || std::atoi(fastest) == rnn.algorithm) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

// Writes the padding of a sequence: the fill value, or NaN.
void FillPadding(const cudnnRNNDataStruct& data, void* elements) {
  const Batch batch = BatchOf(data);
  const size_t size = SizeOf(data.type);
  for (int64_t b = 0; b < data.batch; ++b) {
    for (int64_t t = data.lengths[b]; t < data.time; ++t) {
      char* row =
          static_cast<char*>(elements) + batch.Row(t, b) * data.width * size;
      for (int64_t n = 0; n < data.width; ++n) {
        if (data.fill.empty()) {
          std::memset(row + n * size, kPoison, size);
        } else {
          std::memcpy(row + n * size, data.fill.data(), size);
        }
      }
    }
  }
}

// The reserve: a magic number, the last pass, then the tape.
enum class Stage : uint64_t { kForward, kBackwardData };

double* Tape(void* reserve) {
  return reinterpret_cast<double*>(static_cast<uint64_t*>(reserve) + 2);
}
void SetStage(void* reserve, Stage stage) {
  static_cast<uint64_t*>(reserve)[0] = kMagic;
  static_cast<uint64_t*>(reserve)[1] = static_cast<uint64_t>(stage);
}
bool IsAt(const void* reserve, Stage stage) {
  const auto* words = static_cast<const uint64_t*>(reserve);
  return words[0] == kMagic && words[1] == static_cast<uint64_t>(stage);
}

Elements Of(const cudnnRNNStruct& rnn, const void* data) {
  return {rnn.type, const_cast<void*>(data)};
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 90300; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_BAD_PARAM";
  }
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
  CHECK_PARAM(IsLive(tensor) && rank >= 3 && dims && strides);
  int stride = 1;
  for (int k = rank - 1; k >= 0; --k) {
    CHECK_PARAM(dims[k] > 0 && strides[k] == stride);
    stride *= dims[k];
  }
  tensor->type = type;
  tensor->dims.assign(dims, dims + rank);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensor,
                                         int max_rank, cudnnDataType_t* type,
                                         int* rank, int dims[], int strides[]) {
  CHECK_PARAM(IsLive(tensor) && type && rank && dims && strides);
  *type = tensor->type;
  *rank = static_cast<int>(tensor->dims.size());
  int stride = 1;
  for (int k = *rank - 1; k >= 0; --k) {
    if (k < max_rank) {
      dims[k] = tensor->dims[k];
      strides[k] = stride;
    }
    stride *= tensor->dims[k];
  }
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
  CHECK_PARAM(IsLive(dropout) && handle != nullptr);
  // The package drops between layers itself.
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
  CHECK_PARAM(IsLive(rnn) && IsLive(dropout) && dropout->is_set);
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
  CHECK_PARAM(flags <= CUDNN_RNN_PADDED_IO_ENABLED);
  rnn->is_set = true;
  rnn->is_padded = flags == CUDNN_RNN_PADDED_IO_ENABLED;
  rnn->algorithm = algorithm;
  rnn->type = type;
  rnn->math = math;
  rnn->model = {mode,      input_mode == CUDNN_SKIP_INPUT,
                layers,    direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                input,     hidden,
                projection};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle,
                                   cudnnRNNDescriptor_t rnn, int batch) {
  CHECK_PARAM(handle && IsLive(rnn) && rnn->is_set && batch > 0);
  CHECK_PARAM(rnn->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC);
  if (!IsSupported(*rnn)) {
    return Fail(CUDNN_STATUS_NOT_SUPPORTED, "nothing to build");
  }
  rnn->built_for = batch;
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
  CHECK_PARAM(IsLive(data) && lengths != nullptr);
  CHECK_PARAM(time > 0 && batch > 0 && width > 0);
  for (int b = 0; b < batch; ++b) {
    CHECK_PARAM(lengths[b] > 0 && lengths[b] <= time);
    // Packed sequences are sorted.
    CHECK_PARAM(layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED || b == 0 ||
                lengths[b] <= lengths[b - 1]);
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

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle,
                                        cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x,
                                        size_t* workspace, size_t* reserve) {
  CHECK_PARAM(handle && IsLive(rnn) && rnn->is_set);
  CHECK_PARAM(IsLive(x) && x->is_set && x->width == rnn->model.input);
  CHECK_PARAM(workspace && reserve);
  if (!IsSupported(*rnn)) {
    return Fail(CUDNN_STATUS_NOT_SUPPORTED, "no algorithm %d for this",
                rnn->algorithm);
  }
  *workspace = WorkspaceBytes(*rnn, *x);
  *reserve = mode == CUDNN_FWD_MODE_TRAINING ? ReserveBytes(*rnn, *x) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle,
                                         cudnnRNNDescriptor_t rnn,
                                         size_t* size) {
  CHECK_PARAM(handle && IsLive(rnn) && rnn->is_set && size);
  *size = WeightBytes(*rnn);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t pseudo_layer,
    size_t weights_size, const void* weights, int32_t id,
    cudnnTensorDescriptor_t matrix, void** matrix_address,
    cudnnTensorDescriptor_t bias, void** bias_address) {
  CHECK_PARAM(handle && IsLive(rnn) && rnn->is_set);
  CHECK_PARAM(IsLive(matrix) && IsLive(bias));
  CHECK_PARAM(matrix_address && bias_address);
  const Model& m = rnn->model;
  CHECK_PARAM(pseudo_layer >= 0 && pseudo_layer < m.pseudo_layers());
  CHECK_PARAM(id >= 0 && id < 2 * m.gates() + (m.mode == CUDNN_LSTM ? 1 : 0));
  CHECK_PARAM(weights_size == WeightBytes(*rnn));
  const WeightSpace space = Weights(*rnn);
  const auto fill = [&](const fake::Region& region,
                        cudnnTensorDescriptor_t tensor, bool is_column,
                        void** address) {
    tensor->type = rnn->type;
    *address = nullptr;
    tensor->dims.clear();
    if (region.rows == 0) return;
    tensor->dims = {1, static_cast<int>(region.rows),
                    static_cast<int>(region.columns)};
    if (is_column) std::swap(tensor->dims[1], tensor->dims[2]);
    *address = const_cast<char*>(static_cast<const char*>(weights)) +
               region.offset * SizeOf(rnn->type);
  };
  fill(space.Matrix(pseudo_layer, id), matrix, false, matrix_address);
  fill(space.Bias(pseudo_layer, id), bias, true, bias_address);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
    const int32_t lengths[], cudnnRNNDataDescriptor_t x_data, const void* x,
    cudnnRNNDataDescriptor_t y_data, void* y, cudnnTensorDescriptor_t h,
    const void* hx, void* hy, cudnnTensorDescriptor_t c, const void* cx,
    void* cy, size_t weights_size, const void* weights, size_t workspace_size,
    void* workspace, size_t reserve_size, void* reserve) {
  const bool is_training = mode == CUDNN_FWD_MODE_TRAINING;
  const Pass pass = {
      handle,       rnn,     lengths,        x_data,    y_data,       h,      c,
      weights_size, weights, workspace_size, workspace, reserve_size, reserve};
  if (const cudnnStatus_t status = Check(pass, is_training)) return status;
  CHECK_PARAM(x && y && x != y);
  CHECK_PARAM(is_training || (reserve_size == 0 && reserve == nullptr));
  const Batch batch = BatchOf(*x_data);
  std::vector<double> inference_tape;
  double* tape = nullptr;
  if (is_training) {
    std::memset(reserve, kPoison, reserve_size);
    SetStage(reserve, Stage::kForward);
    tape = Tape(reserve);
  } else {
    inference_tape.resize(Rnn::TapeSize(rnn->model, batch));
    tape = inference_tape.data();
  }
  FillPadding(*y_data, y);
  const WeightSpace space = Weights(*rnn);
  Rnn(rnn->model, batch, space, tape)
      .RunForward({Of(*rnn, x), Of(*rnn, y), Of(*rnn, hx), Of(*rnn, hy),
                   Of(*rnn, cx), Of(*rnn, cy), Of(*rnn, weights)});
  const char* wrong = std::getenv("FAKE_CUDNN_WRONG");
  if (wrong && std::atoi(wrong) == rnn->algorithm) {
    std::memset(
        y, 0,
        y_data->time * y_data->batch * y_data->width * SizeOf(y_data->type));
  }
  Delay(*rnn);
  Log("forward", pass, is_training);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t lengths[],
    cudnnRNNDataDescriptor_t y_data, const void* y, const void* dy,
    cudnnRNNDataDescriptor_t x_data, void* dx, cudnnTensorDescriptor_t h,
    const void* hx, const void* dhy, void* dhx, cudnnTensorDescriptor_t c,
    const void* cx, const void* dcy, void* dcx, size_t weights_size,
    const void* weights, size_t workspace_size, void* workspace,
    size_t reserve_size, void* reserve) {
  const Pass pass = {
      handle,       rnn,     lengths,        x_data,    y_data,       h,      c,
      weights_size, weights, workspace_size, workspace, reserve_size, reserve};
  if (const cudnnStatus_t status = Check(pass, true)) return status;
  CHECK_PARAM(y && dy && dx);
  CHECK_PARAM(IsAt(reserve, Stage::kForward));
  const Batch batch = BatchOf(*x_data);
  cudnnRNNDataStruct undefined = *x_data;
  undefined.fill.clear();
  FillPadding(undefined, dx);
  fake::Backward b = {};
  b.y = Of(*rnn, y);
  b.dy = Of(*rnn, dy);
  b.dx = Of(*rnn, dx);
  b.hx = Of(*rnn, hx);
  b.dhy = Of(*rnn, dhy);
  b.dhx = Of(*rnn, dhx);
  b.cx = Of(*rnn, cx);
  b.dcy = Of(*rnn, dcy);
  b.dcx = Of(*rnn, dcx);
  b.weights = Of(*rnn, weights);
  const WeightSpace space = Weights(*rnn);
  Rnn(rnn->model, batch, space, Tape(reserve)).RunBackwardData(b);
  SetStage(reserve, Stage::kBackwardData);
  Log("backward_data", pass, true);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode,
    const int32_t lengths[], cudnnRNNDataDescriptor_t x_data, const void* x,
    cudnnTensorDescriptor_t h, const void* hx, cudnnRNNDataDescriptor_t y_data,
    const void* y, size_t weights_size, void* gradients, size_t workspace_size,
    void* workspace, size_t reserve_size, void* reserve) {
  const Pass pass = {
      handle,    rnn,          lengths,      x_data,    y_data,
      h,         nullptr,      weights_size, gradients, workspace_size,
      workspace, reserve_size, reserve};
  if (const cudnnStatus_t status = Check(pass, true)) return status;
  CHECK_PARAM(mode == CUDNN_WGRAD_MODE_ADD && x && y);
  CHECK_PARAM(IsAt(reserve, Stage::kBackwardData));
  fake::Backward b = {};
  b.x = Of(*rnn, x);
  b.y = Of(*rnn, y);
  b.hx = Of(*rnn, hx);
  b.weight_gradients = Of(*rnn, gradients);
  const Batch batch = BatchOf(*x_data);
  const WeightSpace space = Weights(*rnn);
  Rnn(rnn->model, batch, space, Tape(reserve)).RunBackwardWeights(b);
  Log("backward_weights", pass, true);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
