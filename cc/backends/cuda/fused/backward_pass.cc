#include "backends/cuda/fused/backward_pass.h"

#include "backends/cuda/fused/layer_pass.h"
#include "backends/cuda/fused/weight_grads.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
class BackwardPass : LayerPass<T> {
 public:
  BackwardPass(const Device& device, const LayerBackward<T>& layer)
      : LayerPass<T>(device, layer), backward_(layer) {}

  Status Run(Algorithm algorithm) {
    TF_LSTM_OPS_RETURN_IF_ERROR(SetArguments());
    TF_LSTM_OPS_RETURN_IF_ERROR(RunSteps(algorithm));
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeInputAndWeightGrads(
        device_, backward_,
        ZGrads<T>{step_.z_grad,
                  this->is_gru() ? step_.recurrent_z_grad : step_.z_grad,
                  step_.previous_h}));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        NarrowState(step_.next_h_grad, backward_.h0_grad));
    return NarrowState(step_.next_c_grad, backward_.c0_grad);
  }

 private:
  using Base = LayerPass<T>;
  using Base::batch_;
  using Base::cell_size_;
  using Base::device_;
  using Base::rows_;
  using Base::width_;
  using typename Base::C;

  Status SetArguments() {
    step_.cell = this->Cell();
    step_.sequence = backward_.sequence;
    step_.c0 = backward_.c0;
    step_.h = backward_.h;
    step_.h_stride = backward_.h_stride;
    step_.saved = backward_.saved;
    step_.h_grad = backward_.h_grad;
    step_.h_grad_stride = backward_.h_grad_stride;
    step_.saved_grad = backward_.saved_grad;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->Widen(backward_.final_h_grad, &step_.next_h_grad));
    if (this->is_lstm()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          this->Widen(backward_.final_c_grad, &step_.next_c_grad));
    }
    step_.z_grad = backward_.z_grad;
    if (!step_.z_grad) {
      TF_LSTM_OPS_RETURN_IF_ERROR(AllocateRows(width_, &step_.z_grad));
    }
    if (this->is_gru()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          AllocateRows(width_, &step_.recurrent_z_grad));
    }
    return this->is_gru() || backward_.weights_grad.recurrent ? SetPreviousH()
                                                              : Status();
  }

  // [rows, width], zero where no step writes.
  Status AllocateRows(int64_t width, T** data) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rows_ * width, data));
    return this->has_unread_rows() ? device_.Zero(*data, rows_ * width)
                                   : Status();
  }

  Status SetPreviousH() {
    PreviousH<T, C> a;
    a.cell = step_.cell;
    a.sequence = backward_.sequence;
    a.h0 = backward_.h0;
    a.h = backward_.h;
    a.h_stride = backward_.h_stride;
    a.saved = backward_.saved;
    TF_LSTM_OPS_RETURN_IF_ERROR(AllocateRows(cell_size_, &a.previous_h));
    step_.previous_h = a.previous_h;
    return this->Launch("previous_h", a);
  }

  Status RunSteps(Algorithm algorithm) {
    if (this->is_empty()) return Status();
    const auto config =
        FindLaunchConfig(device_, backward_, Pass::kBackward, algorithm);
    return config ? RunAllSteps(*config) : RunStepByStep();
  }

  Status RunAllSteps(const LaunchConfig& config) {
    BackwardSteps<T, C> a;
    a.step = step_;
    a.wants_h0_grad = backward_.h0_grad.data != nullptr;
    a.group.dropout = backward_.recurrent_dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MakeGroupArguments(device_, config, backward_, &a.group));
    return this->LaunchPersistent("backward_steps", config, a);
  }

  Status RunStepByStep() {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(batch_ * width_, &step_.step_z_grad));
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Find("backward_step", &function));
    const Multipliers<T>& dropout = backward_.recurrent_dropout;
    const int sets = dropout.sets(this->gates_);
    C* dropped_grad = nullptr;  // of h after dropout, [sets, B, H]
    if (dropout.data) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(sets * batch_ * cell_size_, &dropped_grad));
    }
    for (int64_t s = backward_.sequence.steps - 1; s >= 0; --s) {
      step_.step = s;
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Launch(function, batch_ * cell_size_, step_));
      if (s == 0 && !backward_.h0_grad.data) break;
      TF_LSTM_OPS_RETURN_IF_ERROR(AddRecurrentGrad(dropped_grad, sets));
    }
    return Status();
  }

  // next_h_grad += the gradient through the recurrent weights.
  Status AddRecurrentGrad(C* dropped_grad, int sets) const {
    const GateMatrices<const T>& w = backward_.weights.recurrent;
    if (!dropped_grad) {
      const Matrix<C> h_grad = {step_.next_h_grad, batch_, cell_size_,
                                cell_size_};
      return MultiplyTransposed(w, 1, true, h_grad);
    }
    const Matrix<C> grads = {dropped_grad, batch_, cell_size_,
                             cell_size_,   1,      batch_ * cell_size_};
    TF_LSTM_OPS_RETURN_IF_ERROR(MultiplyTransposed(w, sets, false, grads));
    DropRowsGrad<T, C> a;
    a.sequence = backward_.sequence;
    a.rows = batch_;
    a.width = cell_size_;
    a.sets = sets;
    a.by_batch = true;
    a.from = dropped_grad;
    a.dropout = backward_.recurrent_dropout;
    a.to = step_.next_h_grad;
    return ComputeDropRowsGrad(device_, a);
  }

  // to = step_z_grad W^T, or to += if `adds`, for each set.
  Status MultiplyTransposed(const GateMatrices<const T>& w, int sets, bool adds,
                            const Matrix<C>& to) const {
    const T* z_grad = step_.step_z_grad;
    if (sets == 1) {
      return Multiply(device_, this->AllPreActivations(z_grad, batch_),
                      this->AllGates(w, cell_size_).Transposed(), adds, to);
    }
    return Multiply(device_, this->EachPreActivation(z_grad, batch_),
                    this->EachGate(w, cell_size_).Transposed(), adds, to, sets);
  }

  Status NarrowState(const C* from, const States<T>& to) const {
    if (!to.data) return Status();
    return Copy(device_, CopyRows<C, T>{batch_, cell_size_, from, cell_size_,
                                        to.data, to.stride});
  }

  const LayerBackward<T>& backward_;
  BackwardStep<T, C> step_;
};

}  // namespace

template <class T>
Status ComputeCellBackward(const Device& device, const LayerBackward<T>& layer,
                           Algorithm algorithm) {
  return BackwardPass<T>(device, layer).Run(algorithm);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                            \
  template Status ComputeCellBackward(const Device&, const LayerBackward<T>&, \
                                      Algorithm);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
