#include "backends/cuda/cudnn/weights.h"

#include <algorithm>
#include <cstddef>

namespace tf_lstm_ops::cuda {
namespace {

// The base of the addresses that cuDNN returns. It is never read.
alignas(256) constexpr char kBase = 0;

// Asks cuDNN for the positions of matrices and biases.
class WeightQuery {
 public:
  explicit WeightQuery(const CudnnRnn& rnn) : rnn_(rnn) {}

  Status Make() {
    TF_LSTM_OPS_RETURN_IF_ERROR(matrix_.Make(rnn_.cudnn));
    TF_LSTM_OPS_RETURN_IF_ERROR(bias_.Make(rnn_.cudnn));
    TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(rnn_.cudnn, cudnnGetRNNWeightSpaceSize,
                                      rnn_.handle, rnn_.descriptor,
                                      &space_bytes_);
    return Status();
  }
  int64_t size() const {  // of the weight space, in elements
    return static_cast<int64_t>(space_bytes_) / rnn_.element_size;
  }

  // Finds the matrix and the bias with an ID.
  Status Find(int64_t pseudo_layer, int id) {
    pseudo_layer_ = pseudo_layer;
    id_ = id;
    TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(
        rnn_.cudnn, cudnnGetRNNWeightParams, rnn_.handle, rnn_.descriptor,
        static_cast<int32_t>(pseudo_layer), space_bytes_, &kBase, id,
        matrix_.get(), &matrix_address_, bias_.get(), &bias_address_);
    return Status();
  }
  // The offsets of what was found, in elements. Errors: Internal where it does
  // not have `size` elements.
  Status MatrixOffset(int64_t size, int64_t* offset) const {
    return Offset("matrix", matrix_.get(), matrix_address_, size, offset);
  }
  Status BiasOffset(int64_t size, int64_t* offset) const {
    return Offset("bias", bias_.get(), bias_address_, size, offset);
  }

 private:
  Status Offset(const char* what, cudnnTensorDescriptor_t tensor,
                const void* address, int64_t want, int64_t* offset) const {
    int64_t found = 0;
    if (address) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Size(tensor, &found));
      *offset =
          (static_cast<const char*>(address) - &kBase) / rnn_.element_size;
    }
    if (found == want && *offset + found <= size()) return Status();
    return MakeStatus(Code::kInternal, "tf_lstm_ops: cuDNN ",
                      rnn_.cudnn.cudnnGetVersion(), " has ", found,
                      " elements in the ", what, " ", id_, " of pseudo-layer ",
                      pseudo_layer_, " where ", want, " were expected");
  }

  Status Size(cudnnTensorDescriptor_t tensor, int64_t* size) const {
    constexpr int kRank = 3;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int rank = 0, dims[kRank] = {}, strides[kRank] = {};
    TF_LSTM_OPS_CUDNN_RETURN_IF_ERROR(rnn_.cudnn, cudnnGetTensorNdDescriptor,
                                      tensor, kRank, &type, &rank, dims,
                                      strides);
    *size = int64_t{dims[0]} * dims[1] * dims[2];
    return Status();
  }

  const CudnnRnn& rnn_;
  size_t space_bytes_ = 0;
  TensorDescriptor matrix_, bias_;
  int64_t pseudo_layer_ = 0;
  int id_ = 0;
  void *matrix_address_ = nullptr, *bias_address_ = nullptr;
};

}  // namespace

Status CudnnWeights::Make(const CudnnRnn& rnn, const ParamsLayout& layout,
                          int64_t first, int64_t pseudo_layers,
                          CudnnWeights* weights) {
  WeightQuery query(rnn);
  TF_LSTM_OPS_RETURN_IF_ERROR(query.Make());
  weights->size_ = query.size();
  for (int64_t p = 0; p < pseudo_layers; ++p) {
    for (int id = 0; id < layout.matrices(); ++id) {
      TF_LSTM_OPS_RETURN_IF_ERROR(query.Find(p, id));
      const ParamsLayout::Region matrix = layout.Matrix(first + p, id);
      int64_t offset = 0;
      TF_LSTM_OPS_RETURN_IF_ERROR(query.MatrixOffset(matrix.size(), &offset));
      weights->Add(matrix.offset, offset, matrix.size());
      if (id >= layout.biases()) continue;  // the projection has none
      const ParamsLayout::Region bias = layout.Bias(first + p, id);
      TF_LSTM_OPS_RETURN_IF_ERROR(query.BiasOffset(bias.size(), &offset));
      weights->Add(bias.offset, offset, bias.size());
    }
  }
  weights->JoinRuns();
  const std::vector<Run>& runs = weights->runs_;
  weights->are_params_ = runs.size() == 1 && runs[0].params == 0 &&
                         runs[0].space == 0 && runs[0].size == weights->size_ &&
                         runs[0].size == layout.size();
  return Status();
}

void CudnnWeights::Add(int64_t params, int64_t space, int64_t size) {
  if (size > 0) runs_.push_back({params, space, size});
}

// Joins runs that are contiguous in both layouts.
void CudnnWeights::JoinRuns() {
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
