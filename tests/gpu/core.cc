// The CUDA backend without TensorFlow, for check.py: the CudnnRNN family.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/multi_layer/choose_algorithm.h"
#include "backends/cuda/multi_layer/multi_layer.h"

namespace {

using namespace tf_lstm_ops;        // NOLINT
using namespace tf_lstm_ops::cuda;  // NOLINT

// A problem in plain values; check_core.py has the same structure.
struct Call {
  CUstream stream;
  void* (*allocate)(int64_t bytes);  // of the device; lives as long as the call
  const int32_t* lengths;            // [B], of the host
  int64_t layers, directions, input_size, cell_size, hidden_size;
  int64_t time, batch;
  int32_t type;  // 0 float, 1 double, 2 half, 3 bfloat16
  int32_t cell;  // 0 lstm, 1 gru, 2 tanh, 3 relu
  int32_t time_major, is_training;
  int32_t algorithm;  // an Algorithm, or -1: the op's choice
};

// In the order of the ops' arguments and results.
struct Tensors {
  void *input, *input_h, *input_c, *params;
  void *output, *output_h, *output_c, *reserve;
  void *output_backprop, *output_h_backprop, *output_c_backprop;
  void *input_backprop, *input_h_backprop, *input_c_backprop, *params_backprop;
  int64_t reserve_size;  // in elements
};

Status MakeProblem(const Call& call, MultiLayerRnn* problem) {
  constexpr CellKind kCells[] = {CellKind::kLstm, CellKind::kGru,
                                 CellKind::kTanh, CellKind::kRelu};
  RnnModel& model = problem->model;
  model.cell = kCells[call.cell];
  model.layers = call.layers;
  model.directions = call.directions;
  model.input_size = call.input_size;
  model.cell_size = call.cell_size;
  model.hidden_size = call.hidden_size;
  problem->time_major = call.time_major != 0;
  problem->time = call.time;
  problem->batch = call.batch;
  problem->lengths.assign(call.lengths, call.lengths + call.batch);
  for (const int64_t length : problem->lengths) problem->valid_steps += length;
  return ParamsLayout::Make(model, &problem->params);
}

// The caller's, for as long as the call.
class Pieces : public Memory {
 public:
  explicit Pieces(const Call& call) : call_(call) {}

  Status Allocate(int64_t bytes, void** data) override {
    *data = call_.allocate(bytes);
    return Status();
  }
  size_t blocks() const override { return 0; }
  void FreeAfter(size_t) override {}

 private:
  const Call& call_;
};

template <class T>
class Run {
 public:
  explicit Run(const Call& call) : call_(call) {}

  Status Begin() {
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProblem(call_, &problem_));
    return Device::Make(call_.stream, std::make_unique<Pieces>(call_),
                        &device_);
  }

  Status ReserveSize(const Tensors& t, int64_t* size) {
    std::unique_ptr<MultiLayerAlgorithm<T>> implementation;
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeImplementation(t, &implementation));
    *size = implementation->reserve_size();
    return Status();
  }

  Status Forward(const Tensors& t) {
    MultiLayerForward<T> f = Inputs(t);
    f.output = As(t.output);
    f.output_h = As(t.output_h);
    f.output_c = As(t.output_c);
    f.reserve = As(t.reserve);
    std::unique_ptr<MultiLayerAlgorithm<T>> implementation;
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeImplementation(t, &implementation));
    return implementation->ComputeForward(f);
  }

  Status Backward(const Tensors& t) {
    MultiLayerBackward<T> b = {};
    b.input = As(t.input);
    b.input_h = As(t.input_h);
    b.input_c = As(t.input_c);
    b.params = As(t.params);
    b.output = As(t.output);
    b.reserve = As(t.reserve);
    b.output_backprop = As(t.output_backprop);
    b.output_h_backprop = As(t.output_h_backprop);
    b.output_c_backprop = As(t.output_c_backprop);
    b.input_backprop = As(t.input_backprop);
    b.input_h_backprop = As(t.input_h_backprop);
    b.input_c_backprop = As(t.input_c_backprop);
    b.params_backprop = As(t.params_backprop);
    Algorithm algorithm = GivenAlgorithm();
    if (call_.algorithm < 0 && !AlgorithmOfSize(t.reserve_size, &algorithm)) {
      return InvalidArgument("no algorithm leaves a reserve of this size");
    }
    const auto implementation =
        MultiLayerAlgorithm<T>::Make(problem_, nullptr, algorithm);
    TF_LSTM_OPS_RETURN_IF_ERROR(implementation->Begin(*device_, true));
    return implementation->ComputeBackward(b);
  }

 private:
  Algorithm GivenAlgorithm() const {
    return static_cast<Algorithm>(call_.algorithm);
  }

  Status MakeImplementation(
      const Tensors& t,
      std::unique_ptr<MultiLayerAlgorithm<T>>* implementation) {
    const bool is_training = call_.is_training != 0;
    Algorithm algorithm = GivenAlgorithm();
    if (call_.algorithm < 0) {
      TF_LSTM_OPS_RETURN_IF_ERROR(ChooseAlgorithm(
          *device_, problem_, nullptr, is_training, Inputs(t), &algorithm));
    }
    *implementation =
        MultiLayerAlgorithm<T>::Make(problem_, nullptr, algorithm);
    return (*implementation)->Begin(*device_, is_training);
  }

  static T* As(void* data) { return static_cast<T*>(data); }
  static MultiLayerForward<T> Inputs(const Tensors& t) {
    MultiLayerForward<T> f = {};
    f.input = As(t.input);
    f.input_h = As(t.input_h);
    f.input_c = As(t.input_c);
    f.params = As(t.params);
    return f;
  }

  const Call& call_;
  MultiLayerRnn problem_;
  std::unique_ptr<Device> device_;
};

// Null, or what went wrong.
template <class F>
const char* WithType(const Call& call, const F& f) {
  static thread_local std::string message;
  const auto run = [&](auto&& typed) {
    const Status status = typed.Begin();
    return status.ok() ? f(typed) : status;
  };
  const Status status = call.type == 0   ? run(Run<float>(call))
                        : call.type == 1 ? run(Run<double>(call))
                        : call.type == 2 ? run(Run<Half>(call))
                                         : run(Run<BFloat16>(call));
  message = status.message();
  return status.ok() ? nullptr : message.c_str();
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// TensorFlow's switch, which the backend looks for by this name.
namespace tsl {
static bool allows_tf32 = true;
__attribute__((visibility("default"))) bool
tensor_float_32_execution_enabled() {
  return allows_tf32;
}
}  // namespace tsl

EXPORT void gpu_allow_tf32(int allow) { tsl::allows_tf32 = allow != 0; }

EXPORT const char* gpu_reserve_size(const Call* call, const Tensors* tensors,
                                    int64_t* size) {
  return WithType(*call,
                  [&](auto& run) { return run.ReserveSize(*tensors, size); });
}

EXPORT const char* gpu_forward(const Call* call, const Tensors* tensors) {
  return WithType(*call, [&](auto& run) { return run.Forward(*tensors); });
}

EXPORT const char* gpu_backward(const Call* call, const Tensors* tensors) {
  return WithType(*call, [&](auto& run) { return run.Backward(*tensors); });
}
