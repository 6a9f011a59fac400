// The fake libcudnn.so.9: the functions that tell sizes.
#include "cudnn_spaces.h"

namespace fake {
namespace {

constexpr uint64_t kMagic = 0x7265736572766564;

}  // namespace

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

}  // namespace fake

using fake::IsLive;
using fake::ReserveBytes;
using fake::WeightBytes;
using fake::WorkspaceBytes;

extern "C" {

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle,
                                        cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x,
                                        size_t* workspace, size_t* reserve) {
  CHECK_PARAM(handle && IsLive(rnn) && rnn->is_set);
  CHECK_PARAM(IsLive(x) && x->is_set && x->width == rnn->model.input);
  CHECK_PARAM(workspace && reserve);
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

}  // extern "C"
