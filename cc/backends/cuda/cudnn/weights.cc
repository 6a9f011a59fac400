#include "backends/cuda/cudnn/weights.h"

#include <algorithm>
#include <cstddef>

namespace tf_lstm_ops::cuda {
namespace {

// Asks where matrices and biases stand. No memory is needed for that: cuDNN
// adds offsets to an address, which must not be null.
alignas(256) constexpr char kBase = 0;

class Asking {
 public:
  Asking(const Cudnn& cudnn, cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
         int element_size)
      : cudnn_(cudnn),
        handle_(handle),
        rnn_(rnn),
        element_size_(element_size) {}

  Status Make() {
    TF_LSTM_OPS_RETURN_IF_ERROR(matrix_.Make(cudnn_));
    TF_LSTM_OPS_RETURN_IF_ERROR(bias_.Make(cudnn_));
    return Check(
        cudnn_, cudnn_.cudnnGetRNNWeightSpaceSize(handle_, rnn_, &space_bytes_),
        "cudnnGetRNNWeightSpaceSize");
  }
  int64_t size() const {
    return static_cast<int64_t>(space_bytes_) / element_size_;
  }

  // The first numbers of the matrix and of the bias with this ID, as offsets
  // in elements, where they have the regions' sizes.
  Status Find(int64_t pseudo_layer, int id, const ParamsLayout::Region& matrix,
              const ParamsLayout::Region* bias, int64_t* matrix_offset,
              int64_t* bias_offset) {
    void *matrix_address = nullptr, *bias_address = nullptr;
    TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
        cudnn_, cudnnGetRNNWeightParams, handle_, rnn_,
        static_cast<int32_t>(pseudo_layer), space_bytes_, &kBase, id,
        matrix_.get(), &matrix_address, bias_.get(), &bias_address);
    TF_LSTM_OPS_RETURN_IF_ERROR(Offset("matrix", pseudo_layer, id,
                                       matrix.size(), matrix_.get(),
                                       matrix_address, matrix_offset));
    return bias ? Offset("bias", pseudo_layer, id, bias->size(), bias_.get(),
                         bias_address, bias_offset)
                : Status();
  }

 private:
  Status Offset(const char* what, int64_t pseudo_layer, int id, int64_t want,
                cudnnTensorDescriptor_t tensor, const void* address,
                int64_t* offset) const {
    int64_t size = 0;
    if (address) {
      constexpr int kRank = 3;
      cudnnDataType_t type = CUDNN_DATA_FLOAT;
      int rank = 0, dims[kRank] = {}, strides[kRank] = {};
      TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(cudnn_, cudnnGetTensorNdDescriptor,
                                        tensor, kRank, &type, &rank, dims,
                                        strides);
      size = int64_t{dims[0]} * dims[1] * dims[2];
      *offset = (static_cast<const char*>(address) - &kBase) / element_size_;
    }
    if (size == want && *offset + size <= this->size()) return Status();
    return MakeStatus(Code::kInternal, "tf_lstm_ops: cuDNN ",
                      cudnn_.cudnnGetVersion(), " keeps ", size,
                      " numbers in the ", what, " ", id, " of pseudo-layer ",
                      pseudo_layer, " where ", want, " were expected");
  }

  const Cudnn& cudnn_;
  cudnnHandle_t handle_;
  cudnnRNNDescriptor_t rnn_;
  const int element_size_;
  size_t space_bytes_ = 0;
  TensorDescriptor matrix_, bias_;
};

}  // namespace

Status CudnnWeights::Make(const Cudnn& cudnn, cudnnHandle_t handle,
                          cudnnRNNDescriptor_t rnn, const ParamsLayout& layout,
                          int64_t first, int64_t pseudo_layers,
                          int element_size, CudnnWeights* weights) {
  Asking asking(cudnn, handle, rnn, element_size);
  TF_LSTM_OPS_RETURN_IF_ERROR(asking.Make());
  weights->size_ = asking.size();
  for (int64_t p = 0; p < pseudo_layers; ++p) {
    for (int id = 0; id < layout.matrices(); ++id) {
      const bool has_bias = id < layout.biases();  // the projection has none
      const ParamsLayout::Region matrix = layout.Matrix(first + p, id);
      const ParamsLayout::Region bias =
          has_bias ? layout.Bias(first + p, id) : ParamsLayout::Region{};
      int64_t matrix_offset = 0, bias_offset = 0;
      TF_LSTM_OPS_RETURN_IF_ERROR(asking.Find(p, id, matrix,
                                              has_bias ? &bias : nullptr,
                                              &matrix_offset, &bias_offset));
      weights->Add(matrix.offset, matrix_offset, matrix.size());
      weights->Add(bias.offset, bias_offset, bias.size());
    }
  }
  weights->Join();
  const std::vector<Run>& runs = weights->runs_;
  weights->are_params_ = runs.size() == 1 && runs[0].params == 0 &&
                         runs[0].space == 0 && runs[0].size == weights->size_ &&
                         runs[0].size == layout.size();
  return Status();
}

void CudnnWeights::Add(int64_t params, int64_t space, int64_t size) {
  if (size > 0) runs_.push_back({params, space, size});
}

void CudnnWeights::Join() {
  std::sort(runs_.begin(), runs_.end(),
            [](const Run& a, const Run& b) { return a.params < b.params; });
  std::vector<Run> joined;
  for (const Run& run : runs_) {
    Run* last = joined.empty() ? nullptr : &joined.back();
    if (last && last->params + last->size == run.params &&
        last->space + last->size == run.space) {
      last->size += run.size;
    } else {
      joined.push_back(run);
    }
  }
  runs_ = joined;
}

}  // namespace tf_lstm_ops::cuda
