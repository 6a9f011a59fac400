#include "backends/cuda/multi_layer/choose_layer_algorithm.h"

#include <type_traits>
#include <vector>

#include "backends/cuda/cudnn/single_layer.h"
#include "backends/cuda/fused/layer.h"
#include "backends/cuda/fused/persistent.h"
#include "backends/cuda/fused/result_check.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
std::vector<Algorithm> FusedCandidates(const Device& device,
                                       const LayerDirection<T>& layer,
                                       bool is_training) {
  if (!FitsFusedKernels(layer.sequence.batch, layer.config.cell_size)) {
    return {};
  }
  std::vector<Pass> passes = {Pass::kForward};
  if (is_training) passes.push_back(Pass::kBackward);
  return FusedAlgorithms(device, layer, passes);
}

template <class T>
std::vector<Algorithm> Candidates(const Device& device,
                                  const LayerDirection<T>& layer,
                                  bool is_training) {
  std::vector<Algorithm> all = {Algorithm::kCudnnStandard};
  if (!std::is_same_v<T, double>) {
    all.insert(all.end(),
               {Algorithm::kCudnnPersistStatic, Algorithm::kCudnnPersistDynamic,
                Algorithm::kCudnnPersistStaticSmallH});
  }
  const auto fused = FusedCandidates(device, layer, is_training);
  all.insert(all.end(), fused.begin(), fused.end());
  return all;
}

template <class T>
CallConfig ConfigOf(const Device& device, const LayerDirection<T>& layer,
                    bool is_training) {
  CallConfig config;
  config.kind = CallConfig::Kind::kSingleLayer;
  config.is_training = is_training;
  config.context = device.context();
  config.type = kCublasType<T>;
  config.model.cell = layer.config.cell;
  config.model.input_size = layer.config.input_size;
  config.model.cell_size = layer.config.cell_size;
  config.batch = layer.sequence.batch;
  config.SetTime(layer.sequence.time);
  return config;
}

// Computes the output of all steps, into memory of its own. The outputs of the
// forward pass are also used as the gradients with respect to them. Compares
// the output and, in training, the gradients of the weights.
template <class T>
class SingleLayerTrial : public Trial {
 public:
  SingleLayerTrial(const Device& device, const LayerDirection<T>& layer,
                   bool is_training)
      : device_(device),
        layer_(layer),
        is_training_(is_training),
        output_check_(device),
        weights_check_(device) {
    static_cast<LayerDirection<T>&>(forward_) = layer;
    static_cast<LayerDirection<T>&>(backward_) = layer;
  }

  Status Allocate() override {
    TF_LSTM_OPS_RETURN_IF_ERROR(output_check_.Allocate(output_size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(output_size(), &forward_.h));
    forward_.h_stride = cell_size();
    TF_LSTM_OPS_RETURN_IF_ERROR(AllocateState(&forward_.final_h));
    if (is_lstm()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(AllocateState(&forward_.final_c));
    }
    return is_training_ ? AllocateGrads() : Status();
  }

  Status Run(Algorithm algorithm) override {
    return IsCudnn(algorithm) ? RunCudnn(algorithm) : RunFused(algorithm);
  }

  Status Check(bool* agrees) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(output_check_.Compare(
        forward_.h, rows(), cell_size(), cell_size(), agrees));
    if (!is_training_ || !*agrees) return Status();
    return weights_check_.Compare(weights_grad_, 1, weights_size(),
                                  weights_size(), agrees);
  }

 private:
  bool is_lstm() const { return IsLstm(layer_.config.cell); }
  int64_t cell_size() const { return layer_.config.cell_size; }
  int64_t rows() const { return layer_.sequence.rows(); }
  int64_t output_size() const { return rows() * cell_size(); }
  int64_t width() const { return GateCount(layer_.config.cell) * cell_size(); }
  bool has_recurrent_bias() const {
    return layer_.weights.recurrent_bias != nullptr;
  }
  // The number of elements of the gradients of all weights: [I, G*H], [H, G*H],
  // and the biases.
  int64_t weights_size() const {
    const int64_t biases = has_recurrent_bias() ? 2 : 1;
    return (layer_.config.input_size + cell_size() + biases) * width();
  }

  Status AllocateState(States<T>* state) {
    state->stride = cell_size();
    return device_.Allocate(layer_.sequence.batch * cell_size(), &state->data);
  }
  static States<const T> AsGrad(const States<T>& state) {
    return {state.data, state.stride};
  }

  Status AllocateGrads() {
    backward_.h = backward_.h_grad = forward_.h;
    backward_.h_stride = backward_.h_grad_stride = cell_size();
    backward_.final_h_grad = AsGrad(forward_.final_h);
    backward_.final_c_grad = AsGrad(forward_.final_c);
    TF_LSTM_OPS_RETURN_IF_ERROR(AllocateState(&backward_.h0_grad));
    if (is_lstm()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(AllocateState(&backward_.c0_grad));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(rows() * layer_.config.input_size, &backward_.x_grad));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(weights_size(), &weights_grad_));
    const int gates = GateCount(layer_.config.cell);
    RnnWeights<T>& grad = backward_.weights_grad;
    T* next = weights_grad_;
    grad.input = ByInput(next, gates, cell_size());
    next += layer_.config.input_size * width();
    grad.recurrent = ByInput(next, gates, cell_size());
    next += cell_size() * width();
    grad.input_bias = next;
    if (has_recurrent_bias()) grad.recurrent_bias = next + width();
    return weights_check_.Allocate(weights_size());
  }

  Status RunCudnn(Algorithm algorithm) {
    CudnnSingleLayer<T> cudnn(device_, layer_, true, algorithm);
    TF_LSTM_OPS_RETURN_IF_ERROR(cudnn.Begin(is_training_));
    T* reserve = nullptr;
    if (is_training_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(cudnn.reserve_size(), &reserve));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cudnn.ComputeForward(forward_, forward_.h, reserve));
    if (!is_training_) return Status();
    return cudnn.ComputeBackward(backward_, {forward_.h, forward_.h}, reserve);
  }

  Status RunFused(Algorithm algorithm) {
    T* saved = nullptr;
    if (is_training_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(
          output_size() * SavedCount(layer_.config.cell), &saved));
    }
    const SavedActivations<T> activations =
        ActivationsByOutputRow(saved, layer_.config.cell, cell_size());
    forward_.saved = activations;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cuda::ComputeForward(device_, forward_, algorithm));
    if (!is_training_) return Status();
    backward_.saved =
        ActivationsByOutputRow<const T>(saved, layer_.config.cell, cell_size());
    return cuda::ComputeBackward(device_, backward_, algorithm);
  }

  const Device& device_;
  const LayerDirection<T>& layer_;
  const bool is_training_;
  LayerForward<T> forward_;
  LayerBackward<T> backward_;
  T* weights_grad_ = nullptr;
  ResultCheck<T> output_check_, weights_check_;
};

}  // namespace

template <class T>
Status ChooseLayerAlgorithm(const Device& device,
                            const LayerDirection<T>& layer, bool is_training,
                            Algorithm* chosen) {
  SingleLayerTrial<T> trial(device, layer, is_training);
  return Autotune(device, ConfigOf(device, layer, is_training),
                  Candidates(device, layer, is_training), &trial, chosen);
}

template <class T>
Status ComputeBackwardAsChosen(const Device& device,
                               const LayerBackward<T>& layer) {
  const LayerDirection<T>& direction = layer;
  Algorithm algorithm = Algorithm::kFusedSteps;
  const bool found = FindChoice(ConfigOf(device, direction, true), &algorithm);
  if (!found || IsCudnn(algorithm)) {
    algorithm = FusedAlgorithms(device, direction, {Pass::kBackward}).front();
  }
  return ComputeBackward(device, layer, algorithm);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                \
  template Status ChooseLayerAlgorithm(                           \
      const Device&, const LayerDirection<T>&, bool, Algorithm*); \
  template Status ComputeBackwardAsChosen(const Device&,          \
                                          const LayerBackward<T>&);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
