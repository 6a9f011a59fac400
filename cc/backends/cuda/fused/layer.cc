#include "backends/cuda/fused/layer.h"

#include "backends/cuda/fused/backward_pass.h"
#include "backends/cuda/fused/forward_pass.h"
#include "backends/cuda/fused/persistent.h"
#include "backends/cuda/fused/projection.h"
#include "backends/cuda/fused/result_check.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
Status CheckSizes(const LayerDirection<T>& layer) {
  const int64_t batch = layer.sequence.batch;
  const int64_t cell_size = layer.config.cell_size;
  if (FitsFusedKernels(batch, cell_size)) return Status();
  return MakeStatus(Code::kUnimplemented, "tf_lstm_ops: a state of ", batch,
                    " x ", cell_size, " is too large for CUDA's kernels");
}

// All algorithms compute the input products in the same way, so the input size
// is not a part of the configuration.
template <class T>
CallConfig ConfigOf(const Device& device, const LayerDirection<T>& layer,
                    CallConfig::Kind kind) {
  CallConfig config;
  config.kind = kind;
  config.context = device.context();
  config.type = kCublasType<T>;
  config.model.cell = layer.config.cell;
  config.model.cell_size = layer.config.cell_size;
  config.batch = layer.sequence.batch;
  config.SetTime(layer.sequence.steps);
  return config;
}

// Compares h of all steps.
template <class T>
class ForwardTrial : public Trial {
 public:
  ForwardTrial(const Device& device, const LayerForward<T>& layer)
      : device_(device), layer_(layer), check_(device) {}

  Status Allocate() override {
    const int64_t size = rows() * width();
    if (!layer_.h) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(size, &layer_.h));
      layer_.h_stride = width();
    }
    return check_.Allocate(size);
  }
  Status Run(Algorithm algorithm) override {
    return ComputeForward(device_, layer_, algorithm);
  }
  Status Check(bool* agrees) override {
    return check_.Compare(layer_.h, rows(), width(), layer_.h_stride, agrees);
  }

 private:
  int64_t rows() const { return layer_.sequence.rows(); }
  int64_t width() const { return layer_.config.hidden_size; }

  const Device& device_;
  LayerForward<T> layer_;
  ResultCheck<T> check_;
};

// Compares the gradients of the pre-activations. The gradients of inputs and
// weights follow from these by the same products in every algorithm, so a trial
// leaves them out.
template <class T>
class BackwardTrial : public Trial {
 public:
  BackwardTrial(const Device& device, const LayerBackward<T>& layer)
      : device_(device), layer_(layer), check_(device) {
    layer_.x_grad = nullptr;
    layer_.weights_grad = {};
  }

  Status Allocate() override {
    const int64_t size = rows() * width();
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(size, &layer_.z_grad));
    // No step writes the rows of padding. They must compare as equal.
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Zero(layer_.z_grad, size));
    return check_.Allocate(size);
  }
  Status Run(Algorithm algorithm) override {
    return ComputeBackward(device_, layer_, algorithm);
  }
  Status Check(bool* agrees) override {
    return check_.Compare(layer_.z_grad, rows(), width(), width(), agrees);
  }

 private:
  int64_t rows() const { return layer_.sequence.rows(); }
  int64_t width() const {
    return GateCount(layer_.config.cell) * layer_.config.cell_size;
  }

  const Device& device_;
  LayerBackward<T> layer_;
  ResultCheck<T> check_;
};

}  // namespace

template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer,
                      Algorithm algorithm) {
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSizes(layer));
  return layer.config.projected()
             ? ComputeProjectedForward(device, layer, algorithm)
             : ComputeCellForward<T>(device, {layer, nullptr}, algorithm);
}

template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer,
                       Algorithm algorithm) {
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSizes(layer));
  return layer.config.projected()
             ? ComputeProjectedBackward(device, layer, algorithm)
             : ComputeCellBackward(device, layer, algorithm);
}

template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer) {
  if (layer.sequence.rows() == 0) {  // nothing to time
    return ComputeForward(device, layer, Algorithm::kFusedSteps);
  }
  ForwardTrial<T> trial(device, layer);
  Algorithm algorithm = Algorithm::kFusedSteps;
  TF_LSTM_OPS_RETURN_IF_ERROR(Autotune(
      device, ConfigOf(device, layer, CallConfig::Kind::kLayerForward),
      FusedAlgorithms(device, layer, {Pass::kForward}), &trial, &algorithm));
  return ComputeForward(device, layer, algorithm);
}

template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer) {
  if (layer.sequence.rows() == 0) {  // nothing to time
    return ComputeBackward(device, layer, Algorithm::kFusedSteps);
  }
  BackwardTrial<T> trial(device, layer);
  Algorithm algorithm = Algorithm::kFusedSteps;
  TF_LSTM_OPS_RETURN_IF_ERROR(Autotune(
      device, ConfigOf(device, layer, CallConfig::Kind::kLayerBackward),
      FusedAlgorithms(device, layer, {Pass::kBackward}), &trial, &algorithm));
  return ComputeBackward(device, layer, algorithm);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                        \
  template Status ComputeForward(const Device&, const LayerForward<T>&,   \
                                 Algorithm);                              \
  template Status ComputeBackward(const Device&, const LayerBackward<T>&, \
                                  Algorithm);                             \
  template Status ComputeForward(const Device&, const LayerForward<T>&);  \
  template Status ComputeBackward(const Device&, const LayerBackward<T>&);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
