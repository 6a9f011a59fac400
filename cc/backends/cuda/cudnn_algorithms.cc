#include "backends/cuda/cudnn_algorithms.h"

#include <limits>
#include <tuple>
#include <vector>

#include "backends/cuda/cudnn_stack.h"
#include "backends/cuda/timing.h"
#include "dialects/cudnn_rnn/reserve.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cuda {
namespace {

using cudnn_rnn::BackwardTensors;
using cudnn_rnn::DropoutMask;
using cudnn_rnn::ForwardTensors;
using cudnn_rnn::Problem;

bool IsPadded(const Problem& problem) {
  return problem.valid_steps < problem.time * problem.batch;
}

// Those that cuDNN may have besides the standard one; it says itself which.
template <class T>
std::vector<cudnnRNNAlgo_t> Candidates(const Problem& problem) {
  std::vector<cudnnRNNAlgo_t> all = {CUDNN_RNN_ALGO_STANDARD};
  const bool may_persist = !std::is_same_v<T, double> && !IsPadded(problem) &&
                           !problem.model.projected() && MayTry();
  if (may_persist) {
    all.insert(all.end(),
               {CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_RNN_ALGO_PERSIST_DYNAMIC,
                CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H});
  }
  return all;
}

using Kind =
    std::tuple<CUcontext, TF_DataType, CellKind, int64_t, int64_t, int64_t,
               int64_t, bool, bool, int64_t, int64_t, bool, bool, bool>;

template <class T>
Kind KindOf(const Device& device, const Problem& p, bool has_mask,
            bool is_training) {
  const RnnModel& m = p.model;
  return {device.context(), tf::kDataType<T>,   m.cell,      m.layers,
          m.directions,     m.input_size,       m.cell_size, m.skip_input,
          p.time_major,     PowerOfTwo(p.time), p.batch,     IsPadded(p),
          has_mask,         is_training};
}

Choices<Kind, cudnnRNNAlgo_t>& Chosen() {
  static auto* const chosen = new Choices<Kind, cudnnRNNAlgo_t>;
  return *chosen;
}

// Results in memory that nobody reads. Gradients are given the results' own
// numbers as upstream ones.
template <class T>
class Trial {
 public:
  Trial(const Device& device, const Problem& problem, const DropoutMask* mask,
        bool is_training, const ForwardTensors<T>& inputs)
      : device_(device),
        problem_(problem),
        mask_(mask),
        is_training_(is_training),
        forward_(inputs) {}

  Status Allocate() {
    const RnnModel& m = problem_.model;
    const int64_t steps = problem_.time * problem_.batch;
    const int64_t states = m.pseudo_layers() * problem_.batch;
    const int64_t cells = m.cell == CellKind::kLstm ? states * m.cell_size : 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(steps * m.output_size(), &forward_.output));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(states * m.hidden_size, &forward_.output_h));
    if (cells) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(cells, &forward_.output_c));
    }
    if (!is_training_) return Status();
    backward_.input = forward_.input;
    backward_.input_h = forward_.input_h;
    backward_.input_c = forward_.input_c;
    backward_.params = forward_.params;
    backward_.output = backward_.output_backprop = forward_.output;
    backward_.output_h_backprop = forward_.output_h;
    backward_.output_c_backprop = forward_.output_c;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(steps * m.input_size, &backward_.input_backprop));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(states * m.hidden_size, &backward_.input_h_backprop));
    if (cells) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(cells, &backward_.input_c_backprop));
    }
    return device_.Allocate(problem_.params.size(), &backward_.params_backprop);
  }

  Status Run(cudnnRNNAlgo_t algorithm, float* milliseconds) {
    CudnnStack<T> stack(problem_, mask_, algorithm);
    TF_LSTM_OPS_RETURN_IF_ERROR(stack.Begin(device_, is_training_));
    if (is_training_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(stack.reserve_size(), &forward_.reserve));
      backward_.reserve = forward_.reserve;
    }
    const auto run = [&] {
      TF_LSTM_OPS_RETURN_IF_ERROR(stack.Forward(forward_));
      return is_training_ ? stack.Backward(backward_) : Status();
    };
    return Time(device_, run, milliseconds);
  }

 private:
  const Device& device_;
  const Problem& problem_;
  const DropoutMask* const mask_;
  const bool is_training_;
  ForwardTensors<T> forward_;
  BackwardTensors<T> backward_ = {};
};

}  // namespace

template <class T>
Status ChooseAlgorithm(const Device& device, const Problem& problem,
                       const DropoutMask* mask, bool is_training,
                       const ForwardTensors<T>& inputs,
                       cudnnRNNAlgo_t* algorithm) {
  *algorithm = CUDNN_RNN_ALGO_STANDARD;
  const std::vector<cudnnRNNAlgo_t> candidates = Candidates<T>(problem);
  const Kind kind = KindOf<T>(device, problem, mask != nullptr, is_training);
  if (candidates.size() == 1 || Chosen().Find(kind, algorithm)) return Status();
  bool captures = false;
  TF_LSTM_OPS_RETURN_IF_ERROR(IsCapturing(device, &captures));
  if (captures) return Status();
  Trial<T> trial(device, problem, mask, is_training, inputs);
  TF_LSTM_OPS_RETURN_IF_ERROR(trial.Allocate());
  float best = std::numeric_limits<float>::infinity();
  for (const cudnnRNNAlgo_t candidate : candidates) {
    float milliseconds = 0;
    const Status status = trial.Run(candidate, &milliseconds);
    if (status.code() == Code::kUnimplemented) continue;
    if (status.code() == Code::kResourceExhausted) break;
    TF_LSTM_OPS_RETURN_IF_ERROR(status);
    if (milliseconds >= best) continue;
    best = milliseconds;
    *algorithm = candidate;
  }
  Chosen().Keep(kind, *algorithm);
  return Status();
}

template <class T>
cudnnRNNAlgo_t ChosenAlgorithm(const Device& device, const Problem& problem,
                               const DropoutMask* mask) {
  cudnnRNNAlgo_t algorithm = CUDNN_RNN_ALGO_STANDARD;
  const Kind kind = KindOf<T>(device, problem, mask != nullptr, true);
  if (Candidates<T>(problem).size() > 1) Chosen().Find(kind, &algorithm);
  return algorithm;
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                            \
  template Status ChooseAlgorithm(const Device&, const Problem&,              \
                                  const DropoutMask*, bool,                   \
                                  const ForwardTensors<T>&, cudnnRNNAlgo_t*); \
  template cudnnRNNAlgo_t ChosenAlgorithm<T>(const Device&, const Problem&,   \
                                             const DropoutMask*);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
