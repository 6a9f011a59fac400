#include "backends/cuda/multi_layer/choose_algorithm.h"

#include <type_traits>
#include <vector>

#include "backends/cuda/cudnn/library.h"
#include "backends/cuda/fused/persistent.h"
#include "backends/cuda/fused/result_check.h"
#include "backends/cuda/multi_layer/fused.h"
#include "core/reserve.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
std::vector<Algorithm> FusedCandidates(const Device& device,
                                       const MultiLayerRnn& rnn,
                                       bool is_training) {
  if (!FusedMultiLayer<T>::Supports(rnn)) return {};
  LayerDirection<T> layer;
  layer.config = LayerConfig(rnn.model, 0);
  layer.sequence.batch = rnn.batch;
  layer.sequence.time = layer.sequence.steps = rnn.time;
  std::vector<Pass> passes = {Pass::kForward};
  if (is_training) passes.push_back(Pass::kBackward);
  return FusedAlgorithms(device, layer, passes);
}

// cuDNN reports which of its algorithms support an RNN.
template <class T>
std::vector<Algorithm> Candidates(const Device& device,
                                  const MultiLayerRnn& rnn, bool is_training) {
  std::vector<Algorithm> fused = FusedCandidates<T>(device, rnn, is_training);
  if (!HasCudnn() && !fused.empty()) return fused;
  std::vector<Algorithm> all = {Algorithm::kCudnnStandard};
  if (!std::is_same_v<T, double> && !rnn.has_padding() &&
      !rnn.model.projected()) {
    all.insert(all.end(),
               {Algorithm::kCudnnPersistStatic, Algorithm::kCudnnPersistDynamic,
                Algorithm::kCudnnPersistStaticSmallH});
  }
  all.insert(all.end(), fused.begin(), fused.end());
  return all;
}

template <class T>
CallConfig ConfigOf(const Device& device, const MultiLayerRnn& rnn,
                    bool has_dropout, bool is_training) {
  CallConfig config;
  config.kind = CallConfig::Kind::kMultiLayer;
  config.is_training = is_training;
  config.context = device.context();
  config.type = kCublasType<T>;
  config.model = rnn.model;
  config.batch = rnn.batch;
  config.SetTime(rnn.time);
  config.time_major = rnn.time_major;
  config.has_padding = rnn.has_padding();
  config.has_dropout = has_dropout;
  return config;
}

// Computes into memory of its own, because the size of the op's reserve depends
// on the choice. The outputs of the forward pass are also used as the gradients
// with respect to them. Compares the output and, in training, the gradient of
// the parameters.
template <class T>
class MultiLayerTrial : public Trial {
 public:
  MultiLayerTrial(const Device& device, const MultiLayerRnn& rnn,
                  const DropoutMask* mask, bool is_training,
                  const MultiLayerForward<T>& inputs)
      : device_(device),
        rnn_(rnn),
        mask_(mask),
        is_training_(is_training),
        forward_(inputs),
        output_check_(device),
        params_check_(device) {}

  Status Allocate() override {
    const RnnModel& m = rnn_.model;
    TF_LSTM_OPS_RETURN_IF_ERROR(output_check_.Allocate(output_size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(output_size(), &forward_.output));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(StateSize(m.hidden_size), &forward_.output_h));
    if (IsLstm(m.cell)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(StateSize(m.cell_size), &forward_.output_c));
    }
    return is_training_ ? AllocateGrads() : Status();
  }

  Status Run(Algorithm algorithm) override {
    const auto implementation =
        MultiLayerAlgorithm<T>::Make(rnn_, mask_, algorithm);
    TF_LSTM_OPS_RETURN_IF_ERROR(implementation->Begin(device_, is_training_));
    if (is_training_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          AllocateReserve(implementation->reserve_size()));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(implementation->ComputeForward(forward_));
    return is_training_ ? implementation->ComputeBackward(backward_) : Status();
  }

  Status Check(bool* agrees) override {
    const int64_t width = rnn_.model.output_size();
    TF_LSTM_OPS_RETURN_IF_ERROR(output_check_.Compare(
        forward_.output, rnn_.rows(), width, width, agrees));
    if (!is_training_ || !*agrees) return Status();
    const int64_t size = rnn_.params.size();
    return params_check_.Compare(backward_.params_backprop, 1, size, size,
                                 agrees);
  }

 private:
  int64_t output_size() const { return rnn_.rows() * rnn_.model.output_size(); }
  int64_t StateSize(int64_t width) const {
    return rnn_.model.pseudo_layers() * rnn_.batch * width;
  }

  Status AllocateGrads() {
    const RnnModel& m = rnn_.model;
    backward_.input = forward_.input;
    backward_.input_h = forward_.input_h;
    backward_.input_c = forward_.input_c;
    backward_.params = forward_.params;
    backward_.output = backward_.output_backprop = forward_.output;
    backward_.output_h_backprop = forward_.output_h;
    backward_.output_c_backprop = forward_.output_c;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rnn_.rows() * m.input_size,
                                                 &backward_.input_backprop));
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(StateSize(m.hidden_size),
                                                 &backward_.input_h_backprop));
    if (IsLstm(m.cell)) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(
          StateSize(m.cell_size), &backward_.input_c_backprop));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(params_check_.Allocate(rnn_.params.size()));
    return device_.Allocate(rnn_.params.size(), &backward_.params_backprop);
  }

  // All algorithms get a header of zeros and therefore the same dropout mask.
  Status AllocateReserve(int64_t size) {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(size, &forward_.reserve));
    backward_.reserve = forward_.reserve;
    constexpr int64_t kHeaderBytes = sizeof(ReserveHeader);
    return device_.Zero(reinterpret_cast<char*>(forward_.reserve),
                        kHeaderBytes);
  }

  const Device& device_;
  const MultiLayerRnn& rnn_;
  const DropoutMask* const mask_;
  const bool is_training_;
  MultiLayerForward<T> forward_;
  MultiLayerBackward<T> backward_ = {};
  ResultCheck<T> output_check_, params_check_;
};

}  // namespace

template <class T>
Status ChooseAlgorithm(const Device& device, const MultiLayerRnn& rnn,
                       const DropoutMask* mask, bool is_training,
                       const MultiLayerForward<T>& inputs, Algorithm* chosen) {
  if (rnn.valid_steps == 0) {
    *chosen = Algorithm::kCudnnStandard;  // it launches nothing for such a call
    return Status();
  }
  MultiLayerTrial<T> trial(device, rnn, mask, is_training, inputs);
  return Autotune(device, ConfigOf<T>(device, rnn, mask, is_training),
                  Candidates<T>(device, rnn, is_training), &trial, chosen);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                     \
  template Status ChooseAlgorithm(const Device&, const MultiLayerRnn&, \
                                  const DropoutMask*, bool,            \
                                  const MultiLayerForward<T>&, Algorithm*);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
