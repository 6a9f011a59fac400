// The fake libcudnn.so.9: the sizes, and the passes. They check descriptors,
// sizes and the order of calls. Values that the documentation leaves undefined
// are NaN.
//
// Environment variable: FAKE_CUDNN_LOG, a file that gets a line for each pass.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cudnn_descriptors.h"
#include "rnn.h"

using fake::Batch;
using fake::Elements;
using fake::Rnn;
using fake::SizeOf;
using fake::WeightSpace;

namespace {

// The reserve is a magic number, the last pass, then the tape.
enum class Stage : uint64_t { kForward, kBackwardData };
constexpr uint64_t kMagic = 0x7265736572766564;

Batch BatchOf(const cudnnRNNDataStruct& data) {
  return {data.time, data.batch, data.lengths,
          data.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED};
}

WeightSpace Weights(const cudnnRNNStruct& rnn) {
  return WeightSpace(rnn.model);
}

size_t WeightBytes(const cudnnRNNStruct& rnn) {
  return Weights(rnn).size() * SizeOf(rnn.type);
}

size_t ReserveBytes(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  return 2 * sizeof(uint64_t) +
         Rnn::TapeSize(rnn.model, BatchOf(x)) * sizeof(double);
}

size_t WorkspaceBytes(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  return 128 + 8 * x.batch * rnn.model.hidden;
}

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

constexpr int kPoison = 0xFF;  // NaN in every type

bool IsState(const cudnnTensorStruct* tensor, const cudnnRNNStruct& rnn,
             const cudnnRNNDataStruct& x, int64_t width) {
  return tensor && tensor->type == rnn.type &&
         tensor->dims ==
             std::vector<int>{static_cast<int>(rnn.model.pseudo_layers()),
                              static_cast<int>(x.batch),
                              static_cast<int>(width)};
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
  CHECK_PARAM(p.x && p.x->is_set && p.y && p.y->is_set);
  CHECK_PARAM(p.x->type == rnn.type && p.y->type == rnn.type);
  CHECK_PARAM(p.x->layout == p.y->layout && p.x->time == p.y->time);
  CHECK_PARAM(p.x->batch == p.y->batch && p.x->lengths == p.y->lengths);
  CHECK_PARAM(p.x->width == rnn.model.input);
  CHECK_PARAM(p.y->width == rnn.model.output());
  CHECK_PARAM(p.lengths != nullptr);
  for (int64_t b = 0; b < p.x->batch; ++b) {
    CHECK_PARAM(p.lengths[b] == p.x->lengths[b]);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Check(const Pass& p, bool needs_reserve) {
  CHECK_PARAM(p.handle != nullptr && p.handle->stream != nullptr);
  CHECK_PARAM(p.rnn && p.rnn->is_set);
  const cudnnRNNStruct& rnn = *p.rnn;
  if (const cudnnStatus_t status = CheckData(p)) return status;
  CHECK_PARAM(IsState(p.h, rnn, *p.x, rnn.model.projection));
  // The gradients of weights need no cell state.
  CHECK_PARAM(!p.c || IsState(p.c, rnn, *p.x, rnn.model.hidden));
  CHECK_PARAM(p.weights != nullptr && p.weights_size == WeightBytes(rnn));
  CHECK_PARAM(p.workspace && p.workspace_size >= WorkspaceBytes(rnn, *p.x));
  CHECK_PARAM(!needs_reserve ||
              (p.reserve && p.reserve_size >= ReserveBytes(rnn, *p.x)));
  CHECK_PARAM(!needs_reserve ||
              reinterpret_cast<uintptr_t>(p.reserve) % 16 == 0);
  std::memset(p.workspace, kPoison, p.workspace_size);
  return CUDNN_STATUS_SUCCESS;
}

void Log(const char* pass, const Pass& p, bool is_training) {
  const char* path = std::getenv("FAKE_CUDNN_LOG");
  std::FILE* file = path ? std::fopen(path, "a") : nullptr;
  if (!file) return;
  std::fprintf(file,
               R"({"pass": "%s", "training": %d, "math": %d, "layout": %d})"
               "\n",
               pass, is_training, p.rnn->math, p.x->layout);
  std::fclose(file);
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

Elements Of(const cudnnRNNStruct& rnn, const void* data) {
  return {rnn.type, const_cast<void*>(data)};
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle,
                                        cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x,
                                        size_t* workspace, size_t* reserve) {
  CHECK_PARAM(handle && rnn && rnn->is_set);
  CHECK_PARAM(x && x->is_set && x->width == rnn->model.input);
  CHECK_PARAM(workspace && reserve);
  *workspace = WorkspaceBytes(*rnn, *x);
  *reserve = mode == CUDNN_FWD_MODE_TRAINING ? ReserveBytes(*rnn, *x) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle,
                                         cudnnRNNDescriptor_t rnn,
                                         size_t* size) {
  CHECK_PARAM(handle && rnn && rnn->is_set && size);
  *size = WeightBytes(*rnn);
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
