#include "backends/cuda/cudnn/batch.h"

#include "backends/cuda/fused/tensors.h"

namespace tf_lstm_ops::cuda {
namespace {

Status CopyToDevice(const Device& device, const std::vector<int32_t>& values,
                    const int32_t** copy) {
  const auto size = static_cast<int64_t>(values.size());
  int32_t* to = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Allocate(size, &to));
  *copy = to;
  return CopyFromHost(device, values.data(), size, to);
}

}  // namespace

CudnnBatch::CudnnBatch(const MultiLayerRnn& rnn) : rnn_(rnn) {
  for (int64_t b = 0; b < rnn.batch; ++b) {
    if (rnn.lengths[b] == 0) continue;
    lengths_.push_back(rnn.lengths[b]);
    indices_.push_back(static_cast<int32_t>(b));
    has_padding_ = has_padding_ || rnn.lengths[b] < rnn.time;
  }
}

Status CudnnBatch::Begin(const Device& device) {
  device_ = &device;
  if (rows() == 0) return Status();
  TF_LSTM_OPS_RETURN_IF_ERROR(CopyToDevice(device, lengths_, &device_lengths_));
  return has_all_rows() ? Status()
                        : CopyToDevice(device, indices_, &device_indices_);
}

Status CudnnBatch::Describe(const Cudnn& cudnn, cudnnDataType_t type,
                            int64_t width,
                            cudnnRNNDataDescriptor_t data) const {
  const cudnnRNNDataLayout_t layout =
      !rnn_.time_major ? CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED
      : has_padding_   ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED
                       : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  double zero = 0;  // in every type
  TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
      cudnn, cudnnSetRNNDataDescriptor, data, type, layout,
      static_cast<int>(rnn_.time), static_cast<int>(rows()),
      static_cast<int>(width), lengths_.data(), &zero);
  return Status();
}

CudnnBatch::Layouts CudnnBatch::SequenceLayouts(int64_t width) const {
  const int64_t time = rnn_.time;
  if (rnn_.time_major) {
    return {{time, width, rnn_.batch * width, width},
            {time, width, rows() * width, width}};
  }
  return {{1, time * width, 0, time * width},
          {1, time * width, 0, time * width}};
}

CudnnBatch::Layouts CudnnBatch::StateLayouts(int64_t width) const {
  const int64_t states = rnn_.model.pseudo_layers();
  const Layout cudnn = {states, width, rows() * width, width};
  if (rnn_.time_major) {
    return {{states, width, rnn_.batch * width, width}, cudnn};
  }
  return {{states, width, width, states * width}, cudnn};
}

bool CudnnBatch::AreSame(const Layouts& layouts) const {
  const Layout &op = layouts.op, &cudnn = layouts.cudnn;
  return has_all_rows() &&
         (op.outer == 1 || op.outer_stride == cudnn.outer_stride) &&
         (rows() == 1 || op.row_stride == cudnn.row_stride);
}

}  // namespace tf_lstm_ops::cuda
