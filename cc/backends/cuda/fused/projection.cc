#include "backends/cuda/fused/projection.h"

#include "backends/cuda/fused/cell_kernels.h"
#include "backends/cuda/fused/products.h"
#include "backends/cuda/fused/tensors.h"

namespace tf_lstm_ops::cuda {
namespace {

// Shapes: r [., H], h [., P], pre-activations z [., G*H].
template <class T>
class Projection {
 public:
  using C = ComputeType<T>;

  Projection(const Device& device, const LayerDirection<T>& layer)
      : device_(device),
        layer_(layer),
        rows_(layer.sequence.rows()),
        batch_(layer.sequence.batch),
        cell_(layer.config.cell_size),
        hidden_(layer.config.hidden_size),
        width_(GateCount(layer.config.cell) * cell_),
        w_(Projected(layer.weights.projection)),
        r_(Recurrent(layer.weights.recurrent)) {}

  Status Forward(const LayerForward<T>& args) const {
    CellForward<T> steps = {args, nullptr};
    TF_LSTM_OPS_RETURN_IF_ERROR(Fold(&steps));
    if (args.h0.data) {
      C* first = nullptr;
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(batch_ * width_, &first));
      TF_LSTM_OPS_RETURN_IF_ERROR(
          Product(Rows(args.h0.data, batch_, hidden_, args.h0.stride), r_,
                  first, width_));
      steps.initial_product = first;
    }
    if (!steps.unprojected_h) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(rows_ * cell_, &steps.unprojected_h));
    }
    if (HasOtherRows()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Zero(steps.unprojected_h, rows_ * cell_));
    }
    steps.h = steps.unprojected_h;
    steps.h_stride = cell_;
    steps.fill = Fill::kNothing;
    if (args.final_h.data) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(batch_ * cell_, &steps.final_h.data));
      steps.final_h.stride = cell_;
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeCellForward(device_, steps));
    TF_LSTM_OPS_RETURN_IF_ERROR(Project(steps.h, rows_, args.h, args.h_stride));
    return Project(steps.final_h.data, batch_, args.final_h.data,
                   args.final_h.stride);
  }

  // With h' the gradient by h, r' by r, z' by z:
  //   r' = h' W'   of what comes from above; the steps add z' (W R)'
  //   R' = sum h_before z'
  //   h_before' = z' R'   what comes from the step after
  //   W' = sum r h' + r_before h_before'
  Status Backward(const LayerBackward<T>& args) const {
    LayerBackward<T> steps = args;
    TF_LSTM_OPS_RETURN_IF_ERROR(Fold(&steps));
    steps.h = args.unprojected_h;
    steps.h_stride = cell_;
    steps.final_h_grad = {};
    steps.h0_grad = {};
    steps.weights_grad.recurrent = {};
    steps.weights_grad.projection = {};
    T* h_grad = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(FindHGrad(args, &h_grad));
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProduct(Rows(h_grad, rows_, hidden_),
                                            w_.Transposed(), &steps.h_grad));
    steps.h_grad_stride = cell_;
    if (!steps.z_grad) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(rows_ * width_, &steps.z_grad));
    }
    if (HasOtherRows()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Zero(steps.z_grad, rows_ * width_));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(ComputeBackward(device_, steps));
    const Matrix<const T> dz = Rows(steps.z_grad, rows_, width_);
    const T* before_grad = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProduct(dz, r_.Transposed(), &before_grad));
    TF_LSTM_OPS_RETURN_IF_ERROR(InitialGradient(before_grad, args.h0_grad));
    TF_LSTM_OPS_RETURN_IF_ERROR(RecurrentGradient(args, dz));
    return ProjectionGradient(args, h_grad, before_grad);
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
  Status Project(const T* r, int64_t rows, T* to, int64_t stride) const {
    return to ? Product(Rows(r, rows, cell_), w_, to, stride) : Status();
  }

  // Whether there are rows that no step reads and writes.
  bool HasOtherRows() const {
    return !layer_.sequence.all_valid() ||
           rows_ > batch_ * layer_.sequence.steps;
  }

  // What a layer without projection has in place of one with.
  Status Fold(LayerDirection<T>* steps) const {
    const T* folded = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProduct(w_, r_, &folded));
    steps->config.hidden_size = cell_;
    steps->weights.recurrent =
        ByInput(folded, GateCount(layer_.config.cell), cell_);
    steps->weights.projection = {};
    steps->h0 = {};
    return Status();
  }

  // The gradients by h that come from above, of final_h's too; zero where no
  // step writes.
  Status FindHGrad(const LayerBackward<T>& args, T** h_grad) const {
    SeenRows<T> seen;
    seen.sequence = layer_.sequence;
    seen.rows = rows_;
    seen.width = hidden_;
    seen.from = args.h_grad;
    seen.from_stride = args.h_grad_stride;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rows_ * hidden_, &seen.to));
    *h_grad = seen.to;
    TF_LSTM_OPS_RETURN_IF_ERROR(See(device_, seen));
    if (!args.final_h_grad.data) return Status();
    return AddToLastRows<T>(device_,
                            {layer_.sequence, hidden_, args.final_h_grad.data,
                             args.final_h_grad.stride, *h_grad, hidden_});
  }

  Status InitialGradient(const T* before_grad, const States<T>& to) const {
    if (!to.data) return Status();
    return FirstRows<T>(device_, {layer_.sequence, hidden_, before_grad,
                                  hidden_, to.data, to.stride});
  }

  // What each step began with, of outputs of some width; zero where the row
  // takes no part.
  Status FindBefore(const T* outputs, int64_t stride, int64_t width,
                    const States<const T>& first, const T** before) const {
    HBefore<T, C> a;
    a.cell.cell = width;
    a.sequence = layer_.sequence;
    a.h0 = first;
    a.h = outputs;
    a.h_stride = stride;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rows_ * width, &a.before));
    *before = a.before;
    if (HasOtherRows()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device_.Zero(a.before, rows_ * width));
    }
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        FindCellKernel<T>(device_, layer_.config.cell, "h_before", &function));
    return device_.Launch(function, batch_ * width, a);
  }

  Status RecurrentGradient(const LayerBackward<T>& args,
                           const Matrix<const T>& dz) const {
    if (!args.weights_grad.recurrent) return Status();
    const T* before = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        FindBefore(args.h, args.h_stride, hidden_, args.h0, &before));
    return Multiply(device_, Rows(before, rows_, hidden_).Transposed(), dz,
                    false, Recurrent(args.weights_grad.recurrent));
  }

  Status ProjectionGradient(const LayerBackward<T>& args, const T* h_grad,
                            const T* before_grad) const {
    if (!args.weights_grad.projection) return Status();
    const T* before = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        FindBefore(args.unprojected_h, cell_, cell_, {}, &before));
    const Matrix<T> to = Projected(args.weights_grad.projection);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Multiply(device_, Rows(args.unprojected_h, rows_, cell_).Transposed(),
                 Rows(h_grad, rows_, hidden_), false, to));
    return Multiply(device_, Rows(before, rows_, cell_).Transposed(),
                    Rows(before_grad, rows_, hidden_), true, to);
  }

  const Device& device_;
  const LayerDirection<T>& layer_;
  const int64_t rows_, batch_, cell_, hidden_, width_;
  const Matrix<const T> w_;  // [H, P]
  const Matrix<const T> r_;  // [P, G*H]
};

}  // namespace

template <class T>
Status ForwardProjected(const Device& device, const LayerForward<T>& args) {
  return Projection<T>(device, args).Forward(args);
}

template <class T>
Status BackwardProjected(const Device& device, const LayerBackward<T>& args) {
  return Projection<T>(device, args).Backward(args);
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                         \
  template Status ForwardProjected(const Device&, const LayerForward<T>&); \
  template Status BackwardProjected(const Device&, const LayerBackward<T>&);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
