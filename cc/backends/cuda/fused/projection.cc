#include "backends/cuda/fused/projection.h"

#include "backends/cuda/fused/backward_pass.h"
#include "backends/cuda/fused/cell_kernels.h"
#include "backends/cuda/fused/forward_pass.h"
#include "backends/cuda/fused/products.h"
#include "backends/cuda/fused/tensors.h"
#include "backends/cuda/kernels/step_arguments.h"

namespace tf_lstm_ops::cuda {
namespace {

template <class T>
class Projection {
 public:
  using C = ComputeType<T>;

  Projection(const Device& device, const LayerDirection<T>& layer,
             Algorithm algorithm)
      : device_(device),
        layer_(layer),
        algorithm_(algorithm),
        rows_(layer.sequence.rows()),
        batch_(layer.sequence.batch),
        cell_(layer.config.cell_size),
        hidden_(layer.config.hidden_size),
        width_(GateCount(layer.config.cell) * cell_),
        w_(Projected(layer.weights.projection)),
        r_(Recurrent(layer.weights.recurrent)) {}

  Status Forward(const LayerForward<T>& layer) const {
    CellForward<T> cell = {layer, nullptr};
    TF_LSTM_OPS_RETURN_IF_ERROR(Fold(&cell));
    if (layer.h0.data) {
      C* product = nullptr;
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(batch_ * width_, &product));
      TF_LSTM_OPS_RETURN_IF_ERROR(
          Product(Rows(layer.h0.data, batch_, hidden_, layer.h0.stride), r_,
                  product, width_));
      cell.initial_product = product;
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(SetUnprojectedH(layer, &cell));
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeCellForward(device_, cell, algorithm_));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Project(cell.h, rows_, layer.h, layer.h_stride));
    return Project(cell.final_h.data, batch_, layer.final_h.data,
                   layer.final_h.stride);
  }

  // Let dv be the gradient with respect to v, and h_, m_ the h, m of the
  // previous step. The sums run over all steps.
  //
  //   dm  = dh W^T         from the outputs; each step adds its dz (W R)^T to
  //                        the dm of the previous step
  //   dh_ = dz R^T         the part of the gradient through the next step
  //   dR  = sum h_^T dz
  //   dW  = sum m^T dh + m_^T dh_
  Status Backward(const LayerBackward<T>& layer) const {
    T* h_grad = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(SumHGrads(layer, &h_grad));
    LayerBackward<T> cell = layer;
    TF_LSTM_OPS_RETURN_IF_ERROR(SetCellBackward(layer, h_grad, &cell));
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeCellBackward(device_, cell, algorithm_));
    const Matrix<const T> z_grad = Rows(cell.z_grad, rows_, width_);
    const T* previous_h_grad = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MakeProduct(z_grad, r_.Transposed(), &previous_h_grad));
    TF_LSTM_OPS_RETURN_IF_ERROR(H0Grad(previous_h_grad, layer.h0_grad));
    TF_LSTM_OPS_RETURN_IF_ERROR(RecurrentGrad(layer, z_grad));
    return ProjectionGrad(layer, h_grad, previous_h_grad);
  }

 private:
  template <class E>
  Matrix<E> Projected(const GateMatrices<E>& w) const {
    return {w.data, cell_, hidden_, w.row_stride, w.column_stride};
  }
  template <class E>
  Matrix<E> Recurrent(const GateMatrices<E>& r) const {
    return {r.data, hidden_, width_, r.row_stride, r.column_stride};
  }
  static Matrix<const T> Rows(const T* data, int64_t rows, int64_t columns,
                              int64_t stride) {
    return {data, rows, columns, stride};
  }
  static Matrix<const T> Rows(const T* data, int64_t rows, int64_t columns) {
    return Rows(data, rows, columns, columns);
  }

  // to = a b.
  template <class To>
  Status Product(const Matrix<const T>& a, const Matrix<const T>& b, To* to,
                 int64_t stride) const {
    const Matrix<To> product = {to, a.rows, b.columns, stride};
    return Multiply(device_, a, b, false, product);
  }
  Status MakeProduct(const Matrix<const T>& a, const Matrix<const T>& b,
                     const T** product) const {
    T* to = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(a.rows * b.columns, &to));
    *product = to;
    return Product(a, b, to, b.columns);
  }
  Status Project(const T* m, int64_t rows, T* to, int64_t stride) const {
    return to ? Product(Rows(m, rows, cell_), w_, to, stride) : Status();
  }

  // Whether there are rows that no step writes.
  bool HasUnwrittenRows() const {
    return !layer_.sequence.all_valid() ||
           rows_ > batch_ * layer_.sequence.steps;
  }
  Status ClearUnwrittenRows(T* rows, int64_t width) const {
    return HasUnwrittenRows() ? device_.Zero(rows, rows_ * width) : Status();
  }

  // Turns `cell` into the layer without a projection.
  Status Fold(LayerDirection<T>* cell) const {
    const T* folded = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProduct(w_, r_, &folded));
    cell->config.hidden_size = cell_;
    cell->weights.recurrent =
        ByInput(folded, GateCount(layer_.config.cell), cell_);
    cell->weights.projection = {};
    cell->h0 = {};
    return Status();
  }

  // Where the layer without a projection writes its h: unprojected_h.
  Status SetUnprojectedH(const LayerForward<T>& layer,
                         LayerForward<T>* cell) const {
    cell->h = layer.unprojected_h;
    cell->h_stride = cell_;
    cell->fill = Fill::kNothing;
    if (!cell->h) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rows_ * cell_, &cell->h));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(ClearUnwrittenRows(cell->h, cell_));
    if (!layer.final_h.data) return Status();
    cell->final_h.stride = cell_;
    return device_.Allocate(batch_ * cell_, &cell->final_h.data);
  }

  Status SetCellBackward(const LayerBackward<T>& layer, const T* h_grad,
                         LayerBackward<T>* cell) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(Fold(cell));
    cell->h = layer.unprojected_h;
    cell->h_stride = cell_;
    cell->final_h_grad = {};
    cell->h0_grad = {};
    cell->weights_grad.recurrent = {};
    cell->weights_grad.projection = {};
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProduct(Rows(h_grad, rows_, hidden_),
                                            w_.Transposed(), &cell->h_grad));
    cell->h_grad_stride = cell_;
    if (!cell->z_grad) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(rows_ * width_, &cell->z_grad));
    }
    return ClearUnwrittenRows(cell->z_grad, width_);
  }

  // The gradients of h and final_h together, [rows, P]; zero where no step
  // writes.
  Status SumHGrads(const LayerBackward<T>& layer, T** h_grad) const {
    DropRows<T> a;  // without dropout
    a.sequence = layer_.sequence;
    a.rows = rows_;
    a.width = hidden_;
    a.from = layer.h_grad;
    a.from_stride = layer.h_grad_stride;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rows_ * hidden_, &a.to));
    *h_grad = a.to;
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeDropRows(device_, a));
    if (!layer.final_h_grad.data) return Status();
    return AddToLastRows<T>(device_,
                            {layer_.sequence, hidden_, layer.final_h_grad.data,
                             layer.final_h_grad.stride, *h_grad, hidden_});
  }

  Status H0Grad(const T* previous_h_grad, const States<T>& to) const {
    if (!to.data) return Status();
    return CopyFirstRows<T>(device_, {layer_.sequence, hidden_, previous_h_grad,
                                      hidden_, to.data, to.stride});
  }

  // The row before each step of `outputs`, [rows, width]; zero in rows that no
  // valid step reads.
  Status FindPrevious(const Matrix<const T>& outputs,
                      const States<const T>& initial,
                      const T** previous) const {
    PreviousH<T, C> a;
    a.cell.cell_size = outputs.columns;
    a.sequence = layer_.sequence;
    a.h0 = initial;
    a.h = outputs.data;
    a.h_stride = outputs.row_stride;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(rows_ * outputs.columns, &a.previous_h));
    *previous = a.previous_h;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        ClearUnwrittenRows(a.previous_h, outputs.columns));
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(FindCellKernel<T>(device_, layer_.config.cell,
                                                  "previous_h", &function));
    return device_.Launch(function, batch_ * outputs.columns, a);
  }

  Status RecurrentGrad(const LayerBackward<T>& layer,
                       const Matrix<const T>& z_grad) const {
    if (!layer.weights_grad.recurrent) return Status();
    const T* previous = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(FindPrevious(
        Rows(layer.h, rows_, hidden_, layer.h_stride), layer.h0, &previous));
    return Multiply(device_, Rows(previous, rows_, hidden_).Transposed(),
                    z_grad, false, Recurrent(layer.weights_grad.recurrent));
  }

  Status ProjectionGrad(const LayerBackward<T>& layer, const T* h_grad,
                        const T* previous_h_grad) const {
    if (!layer.weights_grad.projection) return Status();
    const Matrix<const T> m = Rows(layer.unprojected_h, rows_, cell_);
    const T* previous = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(FindPrevious(m, {}, &previous));
    const Matrix<T> to = Projected(layer.weights_grad.projection);
    TF_LSTM_OPS_RETURN_IF_ERROR(Multiply(
        device_, m.Transposed(), Rows(h_grad, rows_, hidden_), false, to));
    return Multiply(device_, Rows(previous, rows_, cell_).Transposed(),
                    Rows(previous_h_grad, rows_, hidden_), true, to);
  }

  const Device& device_;
  const LayerDirection<T>& layer_;
  const Algorithm algorithm_;
  const int64_t rows_, batch_, cell_, hidden_, width_;
  const Matrix<const T> w_;  // [H, P]
  const Matrix<const T> r_;  // [P, G*H]
};

}  // namespace

template <class T>
Status ComputeProjectedForward(const Device& device,
                               const LayerForward<T>& layer,
                               Algorithm algorithm) {
  return Projection<T>(device, layer, algorithm).Forward(layer);
}

template <class T>
Status ComputeProjectedBackward(const Device& device,
                                const LayerBackward<T>& layer,
                                Algorithm algorithm) {
  return Projection<T>(device, layer, algorithm).Backward(layer);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                            \
  template Status ComputeProjectedForward(const Device&,                      \
                                          const LayerForward<T>&, Algorithm); \
  template Status ComputeProjectedBackward(                                   \
      const Device&, const LayerBackward<T>&, Algorithm);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
