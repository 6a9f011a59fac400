#include "backends/cuda/multi_layer/choice.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "backends/cuda/cudnn/library.h"
#include "backends/cuda/fused/products.h"
#include "backends/cuda/fused/result_check.h"
#include "backends/cuda/multi_layer/fused.h"
#include "backends/cuda/runtime/timing.h"
#include "core/reserve.h"

namespace tf_lstm_ops::cuda {
namespace {

bool IsPadded(const MultiLayerRnn& problem) {
  return problem.valid_steps < problem.time * problem.batch;
}

// Those that there may be, the first of them without trying; cuDNN says itself
// which algorithms it has.
template <class T>
std::vector<Way> Candidates(const MultiLayerRnn& problem) {
  const bool has_own = OwnStack<T>::Serves(problem);
  if (!HasCudnn() && has_own) return {Way::kOwnKernels};
  std::vector<Way> all = {Way::kCudnnStandard};
  if (!MayTry()) return all;
  if (!std::is_same_v<T, double> && !IsPadded(problem) &&
      !problem.model.projected()) {
    all.insert(all.end(), {Way::kCudnnPersistStatic, Way::kCudnnPersistDynamic,
                           Way::kCudnnPersistStaticSmallH});
  }
  if (has_own) all.push_back(Way::kOwnKernels);
  return all;
}

using Kind = std::tuple<CUcontext, cudaDataType, CellKind, int64_t, int64_t,
                        int64_t, int64_t, int64_t, bool, bool, int64_t, int64_t,
                        bool, bool, bool, bool>;

template <class T>
Kind KindOf(const Device& device, const MultiLayerRnn& p, bool has_mask,
            bool is_training) {
  const RnnModel& m = p.model;
  return {device.context(), kType<T>,     m.cell,      m.layers,
          m.directions,     m.input_size, m.cell_size, m.hidden_size,
          m.skip_input,     p.time_major, p.batch,     PowerOfTwo(p.time),
          IsPadded(p),      has_mask,     is_training, OwnStack<T>::Serves(p)};
}

Choices<Kind, Way>& Chosen() {
  static auto* const chosen = new Choices<Kind, Way>;
  return *chosen;
}

// Results in memory that nobody reads. Gradients are given the results' own
// numbers as upstream ones.
template <class T>
class Trial {
 public:
  Trial(const Device& device, const MultiLayerRnn& problem,
        const DropoutMask* mask, bool is_training,
        const MultiLayerForward<T>& inputs)
      : device_(device),
        problem_(problem),
        mask_(mask),
        is_training_(is_training),
        forward_(inputs),
        outputs_(device),
        gradients_(device) {}

  Status Allocate() {
    const RnnModel& m = problem_.model;
    const int64_t steps = problem_.time * problem_.batch;
    const int64_t states = m.pseudo_layers() * problem_.batch;
    const int64_t cells = m.cell == CellKind::kLstm ? states * m.cell_size : 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(outputs_.Allocate(steps * m.output_size()));
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
    const int64_t params = problem_.params.size();
    TF_LSTM_OPS_RETURN_IF_ERROR(gradients_.Allocate(params));
    return device_.Allocate(params, &backward_.params_backprop);
  }

  // What others found must agree with what the first one did.
  Status Run(Way way, float* milliseconds, bool* agrees) {
    const Scratch scratch(device_);
    const auto stack = Stack<T>::Make(problem_, mask_, way);
    TF_LSTM_OPS_RETURN_IF_ERROR(stack->Begin(device_, is_training_));
    if (is_training_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(stack->reserve_size(), &forward_.reserve));
      // The same key of dropout's masks for all.
      constexpr int64_t kBytes = sizeof(ReserveHeader);
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Zero(reinterpret_cast<char*>(forward_.reserve), kBytes));
      backward_.reserve = forward_.reserve;
    }
    const auto run = [&] {
      TF_LSTM_OPS_RETURN_IF_ERROR(stack->Forward(forward_));
      return is_training_ ? stack->Backward(backward_) : Status();
    };
    TF_LSTM_OPS_RETURN_IF_ERROR(Time(device_, run, milliseconds));
    return Compare(agrees);
  }

 private:
  Status Compare(bool* agree) {
    const int64_t steps = problem_.time * problem_.batch;
    const int64_t width = problem_.model.output_size();
    TF_LSTM_OPS_RETURN_IF_ERROR(
        outputs_.Compare(forward_.output, steps, width, width, agree));
    if (!is_training_ || !*agree) return Status();
    const int64_t size = problem_.params.size();
    return gradients_.Compare(backward_.params_backprop, 1, size, size, agree);
  }

  const Device& device_;
  const MultiLayerRnn& problem_;
  const DropoutMask* const mask_;
  const bool is_training_;
  MultiLayerForward<T> forward_;
  MultiLayerBackward<T> backward_ = {};
  Agreement<T> outputs_, gradients_;
};

}  // namespace

bool HasCudnn() {
  const char* wish = std::getenv("TF_LSTM_OPS_CUDA_CUDNN");
  const Cudnn* cudnn = nullptr;
  return (wish == nullptr || std::strcmp(wish, "0") != 0) && Open(&cudnn).ok();
}

template <class T>
Status ChooseWay(const Device& device, const MultiLayerRnn& problem,
                 const DropoutMask* mask, bool is_training,
                 const MultiLayerForward<T>& inputs, Way* way) {
  const std::vector<Way> candidates = Candidates<T>(problem);
  *way = candidates.front();
  const Kind kind = KindOf<T>(device, problem, mask != nullptr, is_training);
  if (candidates.size() == 1 || Chosen().Find(kind, way)) return Status();
  bool captures = false;
  TF_LSTM_OPS_RETURN_IF_ERROR(IsCapturing(device, &captures));
  if (captures) return Status();
  const Scratch scratch(device);
  Trial<T> trial(device, problem, mask, is_training, inputs);
  TF_LSTM_OPS_RETURN_IF_ERROR(trial.Allocate());
  float best = std::numeric_limits<float>::infinity();
  for (const Way candidate : candidates) {
    float milliseconds = 0;
    bool agrees = true;
    const Status status = trial.Run(candidate, &milliseconds, &agrees);
    if (status.code() == Code::kUnimplemented) continue;
    if (status.code() == Code::kResourceExhausted) break;
    TF_LSTM_OPS_RETURN_IF_ERROR(status);
    if (!agrees || milliseconds >= best) continue;
    best = milliseconds;
    *way = candidate;
  }
  Chosen().Keep(kind, *way);
  return Status();
}

template <class T>
Way ChosenWay(const Device& device, const MultiLayerRnn& problem,
              const DropoutMask* mask) {
  const std::vector<Way> candidates = Candidates<T>(problem);
  Way way = candidates.front();
  const Kind kind = KindOf<T>(device, problem, mask != nullptr, true);
  if (candidates.size() > 1) Chosen().Find(kind, &way);
  return way;
}

#define TF_LSTM_OPS_INSTANTIATE(T)                               \
  template Status ChooseWay(const Device&, const MultiLayerRnn&, \
                            const DropoutMask*, bool,            \
                            const MultiLayerForward<T>&, Way*);  \
  template Way ChosenWay<T>(const Device&, const MultiLayerRnn&, \
                            const DropoutMask*);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
