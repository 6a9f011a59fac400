// The fake libcudnn.so.9: the functions that tell sizes, and the positions of
// the weights.
//
// Environment variable:
//   FAKE_CUDNN_SCATTERED=1  another layout of the weight space than documented
#include "cudnn_spaces.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace fake {
namespace {

constexpr uint64_t kMagic = 0x7265736572766564;

bool Flag(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

}  // namespace

bool IsSupported(const cudnnRNNStruct& rnn) {
  if (rnn.algorithm == CUDNN_RNN_ALGO_STANDARD) return true;
  return rnn.type == CUDNN_DATA_HALF && !rnn.is_padded &&
         !rnn.model.is_projected() && rnn.model.layers == 1 &&
         rnn.model.hidden % 2 == 0;
}

Batch BatchOf(const cudnnRNNDataStruct& data) {
  return {data.time, data.batch, data.lengths,
          data.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED};
}

WeightSpace Weights(const cudnnRNNStruct& rnn) {
  return {rnn.model, Flag("FAKE_CUDNN_SCATTERED")};
}

size_t WeightBytes(const cudnnRNNStruct& rnn) {
  return Weights(rnn).size() * SizeOf(rnn.type);
}

size_t ReserveBytes(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  return 2 * sizeof(uint64_t) + 64 * static_cast<size_t>(rnn.algorithm) +
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

}  // namespace fake

using fake::Fail;
using fake::IsLive;
using fake::IsSupported;
using fake::Model;
using fake::Region;
using fake::ReserveBytes;
using fake::SizeOf;
using fake::WeightBytes;
using fake::Weights;
using fake::WeightSpace;
using fake::WorkspaceBytes;

extern "C" {

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
  const auto fill = [&](const Region& region, cudnnTensorDescriptor_t tensor,
                        bool is_column, void** address) {
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

}  // extern "C"
