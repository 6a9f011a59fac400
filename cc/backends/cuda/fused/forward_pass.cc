#include "backends/cuda/fused/forward_pass.h"

#include "backends/cuda/fused/layer_pass.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
class ForwardPass : LayerPass<T> {
 public:
  ForwardPass(const Device& device, const CellForward<T>& layer)
      : LayerPass<T>(device, layer), forward_(layer) {}

  Status Run(Algorithm algorithm) {
    SetArguments();
    TF_LSTM_OPS_RETURN_IF_ERROR(SetInputProduct());
    TF_LSTM_OPS_RETURN_IF_ERROR(SetH());
    TF_LSTM_OPS_RETURN_IF_ERROR(SetStates());
    if (this->is_empty()) return Status();
    const auto config =
        FindLaunchConfig(device_, forward_, Pass::kForward, algorithm);
    return config ? RunAllSteps(*config) : RunStepByStep();
  }

 private:
  using Base = LayerPass<T>;
  using Base::batch_;
  using Base::cell_size_;
  using Base::device_;
  using Base::width_;
  using typename Base::C;
  using typename Base::GateInputs;

  void SetArguments() {
    step_.cell = this->Cell();
    step_.sequence = forward_.sequence;
    step_.forget_bias = static_cast<C>(forward_.config.forget_bias);
    step_.input_bias = forward_.weights.input_bias;
    step_.recurrent_bias = forward_.weights.recurrent_bias;
    step_.initial_product = forward_.initial_product;
    step_.h = forward_.h;
    step_.h_stride = forward_.h_stride;
    step_.fill = forward_.fill;
    step_.saved = forward_.saved;
  }

  // The products of all inputs with the input weights.
  Status SetInputProduct() {
    if (!forward_.weights.input) {
      step_.x = forward_.x;
      step_.x_stride = forward_.x_stride;
      step_.x_gate_stride = forward_.config.x_gate_stride;
      return Status();
    }
    GateInputs x;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->DropInputs(
        {forward_.x, this->rows_, this->input_size_, forward_.x_stride},
        forward_.input_dropout, false, &x));
    C* product = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(this->rows_ * width_, &product));
    step_.input_product = product;
    return MultiplyWeights(x, forward_.weights.input, product);
  }

  // The h that the recurrent products read: final_h itself, which a step
  // updates, or its copy after dropout.
  Status SetH() {
    step_.final_h = forward_.final_h;
    if (!step_.final_h.data) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(batch_ * cell_size_, &step_.final_h.data));
      step_.final_h.stride = cell_size_;
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(CopyState(forward_.h0, step_.final_h));
    if (!forward_.recurrent_dropout.data) {
      h_.rows = {step_.final_h.data, batch_, cell_size_, step_.final_h.stride};
      return Status();
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(this->DropStates(
        {forward_.h0.data, batch_, cell_size_, forward_.h0.stride},
        forward_.recurrent_dropout, &h_));
    step_.dropped_h = const_cast<T*>(h_.rows.data);
    step_.dropout = forward_.recurrent_dropout;
    return Status();
  }

  Status SetStates() {
    if (this->is_lstm()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(this->Widen(forward_.c0, &step_.state));
    } else if (this->is_gru()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(this->Widen(forward_.h0, &step_.state));
    }
    if (!forward_.final_c.data) return Status();
    step_.final_c = forward_.final_c;
    return CopyState(forward_.c0, forward_.final_c);
  }

  Status RunStepByStep() {
    C* product = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(batch_ * width_, &product));
    step_.recurrent_product = product;
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Find("forward_step", &function));
    for (step_.step = 0; step_.step < forward_.sequence.steps; ++step_.step) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          MultiplyWeights(h_, forward_.weights.recurrent, product));
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Launch(function, batch_ * cell_size_, step_));
    }
    return Status();
  }

  Status RunAllSteps(const LaunchConfig& config) {
    ForwardSteps<T, C> a;
    a.step = step_;
    a.group.dropout = forward_.recurrent_dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MakeGroupArguments(device_, config, forward_, &a.group));
    TF_LSTM_OPS_RETURN_IF_ERROR(Copy(
        device_,
        CopyRows<T, T>{batch_, cell_size_, h_.rows.data, h_.rows.row_stride,
                       a.group.vectors, config.stride}));
    return this->LaunchPersistent("forward_steps", config, a);
  }

  // to = inputs W, [., G*H].
  Status MultiplyWeights(const GateInputs& inputs,
                         const GateMatrices<const T>& w, C* to) const {
    const Matrix<const T>& rows = inputs.rows;
    if (inputs.sets == 1) {
      return Multiply(device_, rows, this->AllGates(w, rows.columns), false,
                      this->AllPreActivations(to, rows.rows));
    }
    return Multiply(device_, rows, this->EachGate(w, rows.columns), false,
                    this->EachPreActivation(to, rows.rows), inputs.sets);
  }

  Status CopyState(const States<const T>& from, const States<T>& to) const {
    return Copy(device_, CopyRows<T, T>{batch_, cell_size_, from.data,
                                        from.stride, to.data, to.stride});
  }

  const CellForward<T>& forward_;
  ForwardStep<T, C> step_;
  GateInputs h_;  // [sets, B, H]
};

}  // namespace

template <class T>
Status ComputeCellForward(const Device& device, const CellForward<T>& layer,
                          Algorithm algorithm) {
  return ForwardPass<T>(device, layer).Run(algorithm);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                         \
  template Status ComputeCellForward(const Device&, const CellForward<T>&, \
                                     Algorithm);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
