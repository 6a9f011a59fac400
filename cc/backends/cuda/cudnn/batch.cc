#include "backends/cuda/cudnn/batch.h"

#include "backends/cuda/fused/tensors.h"

namespace tf_lstm_ops::cuda {
namespace {

Status CopyNumbers(const Device& device, const std::vector<int32_t>& numbers,
                   const int32_t** copy) {
  const auto size = static_cast<int64_t>(numbers.size());
  int32_t* to = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(size, &to));
  *copy = to;
  return CopyFromHost(device, numbers.data(), size, to);
}

}  // namespace

CudnnBatch::CudnnBatch(const MultiLayerRnn& problem) : problem_(problem) {
  for (int64_t b = 0; b < problem.batch; ++b) {
    if (problem.lengths[b] == 0) continue;
    lengths_.push_back(problem.lengths[b]);
    numbers_.push_back(static_cast<int32_t>(b));
    has_padding_ = has_padding_ || problem.lengths[b] < problem.time;
  }
}

Status CudnnBatch::Begin(const Device& device) {
  device_ = &device;
  if (rows() == 0) return Status();
  TF_LSTM_OPS_RETURN_IF_ERROR(CopyNumbers(device, lengths_, &device_lengths_));
  return is_whole() ? Status()
                    : CopyNumbers(device, numbers_, &device_numbers_);
}

Status CudnnBatch::Describe(const Cudnn& cudnn, cudnnDataType_t type,
                            int64_t width,
                            cudnnRNNDataDescriptor_t data) const {
  const cudnnRNNDataLayout_t layout =
      !problem_.time_major ? CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED
      : has_padding_       ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED
                           : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  double zero = 0;  // in every type
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      cudnn, cudnnSetRNNDataDescriptor, data, type, layout,
      static_cast<int>(problem_.time), static_cast<int>(rows()),
      static_cast<int>(width), lengths_.data(), &zero);
  return Status();
}

CudnnBatch::Forms CudnnBatch::SequenceForms(int64_t width) const {
  const int64_t time = problem_.time;
  if (problem_.time_major) {
    return {{time, width, problem_.batch * width, width},
            {time, width, rows() * width, width}};
  }
  return {{1, time * width, 0, time * width},
          {1, time * width, 0, time * width}};
}

CudnnBatch::Forms CudnnBatch::StateForms(int64_t width) const {
  const int64_t states = problem_.model.pseudo_layers();
  const OpVariant cudnn = {states, width, rows() * width, width};
  if (problem_.time_major) {
    return {{states, width, problem_.batch * width, width}, cudnn};
  }
  return {{states, width, width, states * width}, cudnn};
}

bool CudnnBatch::AreSame(const Forms& forms) const {
  const OpVariant &op = forms.op, &cudnn = forms.cudnn;
  return is_whole() &&
         (op.outer == 1 || op.outer_stride == cudnn.outer_stride) &&
         (rows() == 1 || op.row_stride == cudnn.row_stride);
}

}  // namespace tf_lstm_ops::cuda
