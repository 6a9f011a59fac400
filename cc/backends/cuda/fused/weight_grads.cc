#include "backends/cuda/fused/weight_grads.h"

#include "backends/cuda/fused/layer_pass.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
class WeightGrads : LayerPass<T> {
 public:
  WeightGrads(const Device& device, const LayerBackward<T>& layer,
              const ZGrads<T>& grads)
      : LayerPass<T>(device, layer), backward_(layer), grads_(grads) {}

  Status Run() const {
    const RnnWeights<T>& wanted = backward_.weights_grad;
    TF_LSTM_OPS_RETURN_IF_ERROR(BiasGrad(grads_.z_grad, wanted.input_bias));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        BiasGrad(grads_.recurrent_z_grad, wanted.recurrent_bias));
    TF_LSTM_OPS_RETURN_IF_ERROR(InputWeightGrad());
    TF_LSTM_OPS_RETURN_IF_ERROR(RecurrentWeightGrad());
    TF_LSTM_OPS_RETURN_IF_ERROR(PeepholeGrads());
    return XGrad();
  }

 private:
  using Base = LayerPass<T>;
  using Base::batch_;
  using Base::cell_size_;
  using Base::device_;
  using Base::input_size_;
  using Base::rows_;
  using Base::width_;
  using typename Base::C;
  using typename Base::GateInputs;

  Status BiasGrad(const T* z_grad, T* to) const {
    if (!to) return Status();
    return Sum(device_, z_grad, {rows_, width_, width_}, to);
  }

  // to = inputs^T z_grad.
  Status MatrixGrad(const GateInputs& inputs, const T* z_grad,
                    const GateMatrices<T>& to) const {
    const Matrix<const T>& rows = inputs.rows;
    if (inputs.sets == 1) {
      return Multiply(device_, rows.Transposed(),
                      this->AllPreActivations(z_grad, rows.rows), false,
                      this->AllGates(to, rows.columns));
    }
    return Multiply(device_, rows.Transposed(),
                    this->EachPreActivation(z_grad, rows.rows), false,
                    this->EachGate(to, rows.columns), inputs.sets);
  }

  Status InputWeightGrad() const {
    if (!backward_.weights_grad.input) return Status();
    // Padding may hold NaN, and NaN times a z_grad of zero is NaN.
    const bool clears_unread =
        !backward_.sequence.all_valid() || this->has_unread_rows();
    GateInputs x;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->DropInputs({backward_.x, rows_, input_size_, backward_.x_stride},
                         backward_.input_dropout, clears_unread, &x));
    return MatrixGrad(x, grads_.z_grad, backward_.weights_grad.input);
  }

  Status RecurrentWeightGrad() const {
    if (!backward_.weights_grad.recurrent) return Status();
    GateInputs h;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        this->DropInputs({grads_.previous_h, rows_, cell_size_, cell_size_},
                         backward_.recurrent_dropout, false, &h));
    return MatrixGrad(h, grads_.recurrent_z_grad,
                      backward_.weights_grad.recurrent);
  }

  Status PeepholeGrads() const {
    if (!backward_.weights.has_peephole()) return Status();
    PeepholeSums<T, C> a;
    a.cell = this->Cell();
    a.sequence = backward_.sequence;
    a.c0 = backward_.c0;
    a.saved = backward_.saved;
    a.z_grad = grads_.z_grad;
    const int64_t stride = kMaxPreActivations * cell_size_;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(batch_ * stride, &a.sums));
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Launch("peephole_sums", a));
    for (int gate = 0; gate < kMaxPreActivations; ++gate) {
      T* to = backward_.weights_grad.peephole[gate];
      if (!to) continue;
      TF_LSTM_OPS_RETURN_IF_ERROR(
          SumPartial<T>(device_, a.sums + gate * cell_size_,
                        {batch_, cell_size_, stride}, to));
    }
    return Status();
  }

  Status XGrad() const {
    if (!backward_.x_grad) return Status();
    if (!backward_.weights.input) {
      return ComputeAddedInputGrad<T>(
          device_,
          {rows_, this->gates_, cell_size_, backward_.config.x_gate_stride,
           grads_.z_grad, backward_.x_grad, backward_.x_stride,
           backward_.adds_to_x_grad});
    }
    if (backward_.input_dropout.data) return DroppedXGrad();
    const Matrix<T> to = {backward_.x_grad, rows_, input_size_,
                          backward_.x_stride};
    return Multiply(
        device_, this->AllPreActivations(grads_.z_grad, rows_),
        this->AllGates(backward_.weights.input, input_size_).Transposed(),
        backward_.adds_to_x_grad, to);
  }

  // x_grad with dropout: the gradient of each set, then their sum.
  Status DroppedXGrad() const {
    const int64_t size = rows_ * input_size_;
    const int sets = backward_.input_dropout.sets(this->gates_);
    C* set_grads = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(sets * size, &set_grads));
    TF_LSTM_OPS_RETURN_IF_ERROR(MultiplySets(sets, set_grads));
    DropRowsGrad<T, C> a;
    a.sequence = backward_.sequence;
    a.rows = rows_;
    a.width = input_size_;
    a.sets = sets;
    a.from = set_grads;
    a.dropout = backward_.input_dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(size, &a.to));
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Zero(a.to, size));
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeDropRowsGrad(device_, a));
    return Copy(device_, CopyRows<C, T>{rows_, input_size_, a.to, input_size_,
                                        backward_.x_grad, backward_.x_stride,
                                        backward_.adds_to_x_grad});
  }

  // to [sets, rows, I] = z_grad W^T.
  Status MultiplySets(int sets, C* to) const {
    const GateMatrices<const T>& w = backward_.weights.input;
    const Matrix<C> products = {to,          rows_, input_size_,
                                input_size_, 1,     rows_ * input_size_};
    if (sets == 1) {
      return Multiply(device_, this->AllPreActivations(grads_.z_grad, rows_),
                      this->AllGates(w, input_size_).Transposed(), false,
                      products);
    }
    return Multiply(device_, this->EachPreActivation(grads_.z_grad, rows_),
                    this->EachGate(w, input_size_).Transposed(), false,
                    products, sets);
  }

  const LayerBackward<T>& backward_;
  const ZGrads<T>& grads_;
};

}  // namespace

template <class T>
Status ComputeInputAndWeightGrads(const Device& device,
                                  const LayerBackward<T>& layer,
                                  const ZGrads<T>& grads) {
  return WeightGrads<T>(device, layer, grads).Run();
}

#define TF_LSTM_OPS_INSTANTIATE(T)            \
  template Status ComputeInputAndWeightGrads( \
      const Device&, const LayerBackward<T>&, const ZGrads<T>&);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
