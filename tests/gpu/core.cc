// The CUDA backend without TensorFlow, for check.py: a direction of an LSTM
// layer on the package's own kernels, and a multi-layer RNN by cuDNN.
#include <cstdint>
#include <memory>
#include <string>

#include "backends/cuda/cudnn/rnn.h"
#include "backends/cuda/layer/layer.h"
#include "core/gate_order.h"

namespace {

using namespace tf_lstm_ops;        // NOLINT
using namespace tf_lstm_ops::cuda;  // NOLINT

// A problem in plain values; backend.py has the same structure.
struct Call {
  CUstream stream;
  void* (*allocate)(int64_t bytes);  // of the device; lives as long as the call
  const int32_t* lengths;            // [B], of the host; of cuDNN only
  int64_t layers, directions, inputs, units, hidden, time, batch;
  double clip;
  int32_t type;  // 0 float, 1 double, 2 half, 3 bfloat16
  int32_t cell;  // of cuDNN: 0 lstm, 1 gru, 2 tanh, 3 relu
  int32_t reversed, time_major, is_training;
};

// Null where there is none. Sequences of a layer are [B, T, .].
struct Tensors {
  void *x, *mask, *h0, *c0, *kernel, *recurrent, *bias, *peephole;
  void *y, *final_h, *final_c, *saved;
  void *y_grad, *final_h_grad, *final_c_grad;
  void *x_grad, *h0_grad, *c0_grad, *kernel_grad, *recurrent_grad, *bias_grad;
  void* peephole_grad;
};

// The caller's, for as long as the call.
class Pieces : public Memory {
 public:
  explicit Pieces(const Call& call) : call_(call) {}
  Status Allocate(int64_t bytes, void** data) override {
    *data = call_.allocate(bytes);
    return Status();
  }

 private:
  const Call& call_;
};

template <class T>
T* As(void* data) {
  return static_cast<T*>(data);
}

template <class T>
void SetWeights(const Call& call, T* kernel, T* recurrent, T* bias, T* peephole,
                RnnWeights<T>* weights) {
  weights->input = ByInput(kernel, 4, call.units);
  weights->recurrent = ByInput(recurrent, 4, call.units);
  weights->input_bias = bias;
  constexpr LstmGate kGates[] = {kGateI, kGateF, kGateO};
  for (int n = 0; peephole && n < 3; ++n) {
    weights->peephole[kGates[n]] = peephole + n * call.units;
  }
}

template <class T, class E>
void SetLayer(const Call& call, const Tensors& t, LayerDirection<E>* layer) {
  layer->config.gate_order = kOrderIFCO;
  layer->config.input_size = layer->x_stride = call.inputs;
  layer->config.cell_size = layer->config.hidden_size = call.units;
  layer->config.cell_clip = call.clip;
  layer->sequence.batch = call.batch;
  layer->sequence.time = layer->sequence.steps = call.time;
  layer->sequence.time_major = false;
  layer->sequence.reversed = call.reversed != 0;
  layer->sequence.in_order_of_computation = true;
  layer->sequence.mask = As<const bool>(t.mask);
  layer->x = As<T>(t.x);
  layer->h0 = {As<T>(t.h0), call.units};
  layer->c0 = {As<T>(t.c0), call.units};
  SetWeights<const T>(call, As<T>(t.kernel), As<T>(t.recurrent), As<T>(t.bias),
                      As<T>(t.peephole), &layer->weights);
}

template <class T>
Status LayerForwardPass(const Device& device, const Call& call,
                        const Tensors& t) {
  LayerForward<T> layer;
  SetLayer<T>(call, t, &layer);
  layer.h = As<T>(t.y);
  layer.h_stride = call.units;
  layer.fill = Fill::kPrevious;
  layer.final_h = {As<T>(t.final_h), call.units};
  layer.final_c = {As<T>(t.final_c), call.units};
  layer.saved =
      ActivationsByOutputRow(As<T>(t.saved), layer.config.cell, call.units);
  return ComputeForward(device, layer);
}

// y_grad must be zero in masked steps.
template <class T>
Status LayerBackwardPass(const Device& device, const Call& call,
                         const Tensors& t) {
  LayerBackward<T> layer;
  SetLayer<T>(call, t, &layer);
  layer.h = As<T>(t.y);
  layer.h_grad = As<T>(t.y_grad);
  layer.h_stride = layer.h_grad_stride = call.units;
  layer.final_h_grad = {As<T>(t.final_h_grad), call.units};
  layer.final_c_grad = {As<T>(t.final_c_grad), call.units};
  layer.saved = ActivationsByOutputRow(static_cast<const T*>(t.saved),
                                       layer.config.cell, call.units);
  layer.x_grad = As<T>(t.x_grad);
  layer.h0_grad = {As<T>(t.h0_grad), call.units};
  layer.c0_grad = {As<T>(t.c0_grad), call.units};
  SetWeights<T>(call, As<T>(t.kernel_grad), As<T>(t.recurrent_grad),
                As<T>(t.bias_grad), As<T>(t.peephole_grad),
                &layer.weights_grad);
  return ComputeBackward(device, layer);
}

Status MakeRnn(const Call& call, MultiLayerRnn* rnn) {
  constexpr CellKind kCells[] = {CellKind::kLstm, CellKind::kGru,
                                 CellKind::kTanh, CellKind::kRelu};
  RnnModel& model = rnn->model;
  model.cell = kCells[call.cell];
  model.layers = call.layers;
  model.directions = call.directions;
  model.input_size = call.inputs;
  model.cell_size = call.units;
  model.hidden_size = call.hidden;
  rnn->time_major = call.time_major != 0;
  rnn->time = call.time;
  rnn->batch = call.batch;
  rnn->lengths.assign(call.lengths, call.lengths + call.batch);
  for (const int64_t length : rnn->lengths) rnn->valid_steps += length;
  return ParamsLayout::Make(model, &rnn->params);
}

// The weights are t.kernel, the reserve is t.saved.
template <class T>
Status CudnnPass(const Device& device, const Call& call, const Tensors& t,
                 int64_t* reserve_size) {
  MultiLayerRnn rnn;
  TF_LSTM_OPS_RETURN_IF_ERROR(MakeRnn(call, &rnn));
  CudnnRnn<T> cudnn(device, rnn);
  TF_LSTM_OPS_RETURN_IF_ERROR(cudnn.Begin(call.is_training != 0));
  if (reserve_size) {
    *reserve_size = cudnn.reserve_size();
    return Status();
  }
  if (!t.y_grad) {
    return cudnn.ComputeForward({As<T>(t.x), As<T>(t.h0), As<T>(t.c0),
                                 As<T>(t.kernel), As<T>(t.y), As<T>(t.final_h),
                                 As<T>(t.final_c), As<T>(t.saved)});
  }
  return cudnn.ComputeBackward(
      {As<T>(t.x), As<T>(t.h0), As<T>(t.c0), As<T>(t.kernel), As<T>(t.y),
       As<T>(t.saved), As<T>(t.y_grad), As<T>(t.final_h_grad),
       As<T>(t.final_c_grad), As<T>(t.x_grad), As<T>(t.h0_grad),
       As<T>(t.c0_grad), As<T>(t.kernel_grad)});
}

// Calls f(device). Returns null, or what went wrong.
template <class F>
const char* OnDevice(const Call& call, const F& f) {
  static thread_local std::string message;
  std::unique_ptr<Device> device;
  Status status =
      Device::Make(call.stream, std::make_unique<Pieces>(call), &device);
  if (status.ok()) status = f(*device);
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

EXPORT const char* gpu_layer(const Call* call, const Tensors* t) {
  return OnDevice(*call, [&](const Device& device) {
    const auto run = [&](auto type) {
      using T = decltype(type);
      return t->y_grad ? LayerBackwardPass<T>(device, *call, *t)
                       : LayerForwardPass<T>(device, *call, *t);
    };
    return call->type == 0   ? run(float())
           : call->type == 1 ? run(double())
           : call->type == 2 ? run(Half())
                             : run(BFloat16());
  });
}

// With `reserve_size` the call only sets it.
EXPORT const char* gpu_cudnn(const Call* call, const Tensors* t,
                             int64_t* reserve_size) {
  return OnDevice(*call, [&](const Device& device) {
    return call->type == 0 ? CudnnPass<float>(device, *call, *t, reserve_size)
           : call->type == 1
               ? CudnnPass<double>(device, *call, *t, reserve_size)
               : CudnnPass<Half>(device, *call, *t, reserve_size);
  });
}
