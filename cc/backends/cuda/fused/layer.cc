#include "backends/cuda/fused/layer.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "backends/cuda/fused/cell_kernels.h"
#include "backends/cuda/fused/persistent.h"
#include "backends/cuda/fused/products.h"
#include "backends/cuda/fused/projection.h"
#include "backends/cuda/fused/tensors.h"
#include "backends/cuda/kernels/block.h"
#include "core/lstm_cell.h"

namespace tf_lstm_ops::cuda {
namespace {

// What both passes have in common.
template <class T>
class Pass {
 protected:
  using C = ComputeType<T>;

  Pass(const Device& device, const LayerDirection<T>& layer)
      : device_(device),
        layer_(layer),
        sequence_(layer.sequence),
        rows_(layer.sequence.rows()),
        batch_(layer.sequence.batch),
        input_(layer.config.input_size),
        cell_(layer.config.cell_size),
        gates_(GateCount(layer.config.cell)),
        width_(gates_ * cell_) {}

  bool HasState() const {
    return is_lstm() || layer_.config.cell == CellKind::kGru;
  }
  bool is_lstm() const { return IsLstm(layer_.config.cell); }

  Status CheckSizes() const {
    if (cell_ == 0 || batch_ <= std::numeric_limits<int>::max() / cell_) {
      return Status();
    }
    return MakeStatus(Code::kUnimplemented, "tf_lstm_ops: a state of ", batch_,
                      " x ", cell_, " is too large for CUDA's kernels");
  }

  Status Find(const char* kernel, CUfunction* function) const {
    return FindCellKernel<T>(device_, layer_.config.cell, kernel, function);
  }

  // How all steps may be one launch, in which each unit takes part with rows of
  // weights of a depth.
  std::vector<Spread> Spreads(int64_t rows_of_unit, int64_t depth) const {
    if (layer_.recurrent_dropout.sets(gates_) > 1 || !CanPersist<T>(device_)) {
      return {};
    }
    return FindSpreads(device_,
                       {cell_, rows_of_unit, depth, sequence_.steps, batch_},
                       sizeof(T));
  }
  PersistenceKind KindOf(bool is_backward, int64_t result_size) const {
    return {result_size, sizeof(T),          batch_,     sequence_.steps,
            cell_,       layer_.config.cell, is_backward};
  }
  template <class Arguments>
  Status LaunchPersistent(const char* kernel, const Spread& spread,
                          Arguments* a) const {
    a->shared.dropout = layer_.recurrent_dropout;
    const bool in_clusters = spread.launches == Launches::kClusters;
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        FindPersistentKernel<T>(device_, layer_.config.cell, spread.tiles,
                                in_clusters, kernel, &function));
    const int threads = spread.warps * kWarp;
    return in_clusters
               ? device_.LaunchInClusters(function, spread.groups,
                                          spread.blocks, threads,
                                          spread.shared_bytes, *a)
               : device_.LaunchTogether(function, spread.blocks, threads,
                                        spread.shared_bytes, *a);
  }

  CellArguments<T, C> Cell() const {
    CellArguments<T, C> cell;
    cell.cell = cell_;
    cell.gates = gates_;
    for (int p = 0; p < kMaxPreActivations; ++p) {
      cell.block[p] = layer_.config.gate_order.block[p];
      cell.peephole[p] = layer_.weights.peephole[p];
    }
    cell.has_peephole = layer_.weights.has_peephole();
    cell.clip = static_cast<C>(layer_.config.cell_clip);
    cell.activations = layer_.config.activations;
    return cell;
  }

  // The matrices of all gates as one, [K, G*H]: both layouts of
  // core/layer_direction.h are.
  template <class E>
  Matrix<E> AllGates(const GateMatrices<E>& w, int64_t k) const {
    return {w.data, k, width_, w.row_stride, w.column_stride};
  }
  // As one for each gate, [K, H].
  template <class E>
  Matrix<E> EachGate(const GateMatrices<E>& w, int64_t k) const {
    return {w.data, k, cell_, w.row_stride, w.column_stride, w.gate_stride};
  }

  // So many rows of all gates' numbers; each gate's.
  template <class E>
  Matrix<E> AllColumns(E* data, int64_t rows) const {
    return {data, rows, width_, width_};
  }
  template <class E>
  Matrix<E> EachColumns(E* data, int64_t rows) const {
    return {data, rows, cell_, width_, 1, cell_};
  }

  // to = rows W, [., G*H], where the rows are those that each gate sees, [sets,
  // ., K].
  Status MultiplyWeights(const Matrix<const T>& rows, int sets,
                         const GateMatrices<const T>& w, C* to) const {
    if (sets == 1) {
      return Multiply(device_, rows, AllGates(w, rows.columns), false,
                      AllColumns(to, rows.rows));
    }
    return Multiply(device_, rows, EachGate(w, rows.columns), false,
                    EachColumns(to, rows.rows), sets);
  }

  // Rows as each gate sees them. Those of states have a row for each row of the
  // batch, others one for each row of the input.
  struct Seen {
    bool of_states = false;
    const T* from = nullptr;
    int64_t stride = 0;
    int64_t width = 0;
    const Multipliers<T>& dropout;
  };

  int Sets(const Seen& seen) const { return seen.dropout.sets(gates_); }

  Status See(const Seen& seen, Matrix<const T>* rows) const {
    SeenRows<T> a;
    a.sequence = sequence_;
    a.rows = seen.of_states ? batch_ : rows_;
    a.width = seen.width;
    a.sets = Sets(seen);
    a.of_states = seen.of_states;
    a.from = seen.from;
    a.from_stride = seen.stride;
    a.dropout = seen.dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(a.sets * a.rows * a.width, &a.to));
    *rows = {a.to, a.rows, a.width, a.width, 1, a.rows * a.width};
    return cuda::See(device_, a);
  }

  // [B, H] numbers to compute with, from states.
  Status Widen(const States<const T>& from, C** to) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(batch_ * cell_, to));
    return Copy(device_, CopyRows<T, C>{batch_, cell_, from.data, from.stride,
                                        *to, cell_});
  }

  const Device& device_;
  const LayerDirection<T>& layer_;
  const Sequence& sequence_;
  const int64_t rows_, batch_, input_, cell_;
  const int gates_;
  const int64_t width_;
};

template <class T>
class ForwardPass : Pass<T> {
 public:
  ForwardPass(const Device& device, const CellForward<T>& args)
      : Pass<T>(device, args), args_(args) {}

  Status Run() {
    TF_LSTM_OPS_RETURN_IF_ERROR(this->CheckSizes());
    if (batch_ == 0 || cell_ == 0) return Begin();
    return RunFastest<T>(
        device_, this->KindOf(false, batch_ * cell_),
        this->Spreads(this->gates_, cell_),
        [&](const Spread* spread) {
          return spread ? AllAtOnce(*spread) : StepByStep();
        },
        [&]() -> RunResult<T> {
          return {step_.last_h.data, batch_, cell_, step_.last_h.stride};
        });
  }

 private:
  using Base = Pass<T>;
  using Base::batch_;
  using Base::cell_;
  using Base::device_;
  using Base::width_;
  using typename Base::C;

  Status StepByStep() {
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin());
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(batch_ * width_, &from_h_));
    step_.from_h = from_h_;
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Find("forward_step", &function));
    for (step_.step = 0; step_.step < args_.sequence.steps; ++step_.step) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          this->MultiplyWeights(h_, sets_, args_.weights.recurrent, from_h_));
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Launch(function, batch_ * cell_, step_));
    }
    return Status();
  }

  Status AllAtOnce(const Spread& spread) {
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin());
    ForwardSteps<T, C> a;
    a.step = step_;
    TF_LSTM_OPS_RETURN_IF_ERROR(MakePersistence(
        device_, spread, batch_, args_.weights.recurrent, &a.shared));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Copy(device_, CopyRows<T, T>{batch_, cell_, h_.data, h_.row_stride,
                                     a.shared.vectors, spread.stride}));
    return this->LaunchPersistent("forward_steps", spread, &a);
  }

  Status Begin() {
    step_.cell = this->Cell();
    step_.sequence = args_.sequence;
    step_.forget_bias = static_cast<C>(args_.config.forget_bias);
    step_.input_bias = args_.weights.input_bias;
    step_.recurrent_bias = args_.weights.recurrent_bias;
    step_.first = args_.initial_product;
    step_.h = args_.h;
    step_.h_stride = args_.h_stride;
    step_.fill = args_.fill;
    step_.saved = args_.saved;
    TF_LSTM_OPS_RETURN_IF_ERROR(BeginInput());
    TF_LSTM_OPS_RETURN_IF_ERROR(BeginH());
    if (this->HasState()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          this->Widen(this->is_lstm() ? args_.c0 : args_.h0, &step_.state));
    }
    if (args_.final_c.data) {
      step_.last_c = args_.final_c;
      TF_LSTM_OPS_RETURN_IF_ERROR(CopyStates(args_.c0, args_.final_c));
    }
    return Status();
  }

  // The products of all inputs and their weights at once.
  Status BeginInput() {
    if (!args_.weights.input) {
      step_.x = args_.x;
      step_.x_stride = args_.x_stride;
      step_.x_gate_stride = args_.config.x_gate_stride;
      return Status();
    }
    C* from_input = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(this->rows_ * width_, &from_input));
    step_.from_input = from_input;
    const typename Base::Seen seen = {false, args_.x, args_.x_stride,
                                      this->input_, args_.input_dropout};
    Matrix<const T> x = {args_.x, this->rows_, this->input_, args_.x_stride};
    if (args_.input_dropout.data) {
      TF_LSTM_OPS_RETURN_IF_ERROR(this->See(seen, &x));
    }
    return this->MultiplyWeights(x, this->Sets(seen), args_.weights.input,
                                 from_input);
  }

  // h as the product of a step sees it: the last one itself, or with dropout.
  Status BeginH() {
    step_.last_h = args_.final_h;
    if (!step_.last_h.data) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(batch_ * cell_, &step_.last_h.data));
      step_.last_h.stride = cell_;
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(CopyStates(args_.h0, step_.last_h));
    if (!args_.recurrent_dropout.data) {
      h_ = {step_.last_h.data, batch_, cell_, step_.last_h.stride};
      return Status();
    }
    const typename Base::Seen seen = {true, args_.h0.data, args_.h0.stride,
                                      cell_, args_.recurrent_dropout};
    sets_ = this->Sets(seen);
    TF_LSTM_OPS_RETURN_IF_ERROR(this->See(seen, &h_));
    step_.seen_h = const_cast<T*>(h_.data);
    step_.dropout = args_.recurrent_dropout;
    return Status();
  }

  Status CopyStates(const States<const T>& from, const States<T>& to) const {
    return Copy(device_, CopyRows<T, T>{batch_, cell_, from.data, from.stride,
                                        to.data, to.stride});
  }

  const CellForward<T>& args_;
  ForwardStep<T, C> step_;
  Matrix<const T> h_;  // [sets, B, H]
  int sets_ = 1;
  C* from_h_ = nullptr;  // [B, G*H]
};

template <class T>
class BackwardPass : Pass<T> {
 public:
  BackwardPass(const Device& device, const LayerBackward<T>& args)
      : Pass<T>(device, args), args_(args) {}

  Status Run() {
    TF_LSTM_OPS_RETURN_IF_ERROR(this->CheckSizes());
    TF_LSTM_OPS_RETURN_IF_ERROR(AllSteps());
    TF_LSTM_OPS_RETURN_IF_ERROR(InputGradients());
    TF_LSTM_OPS_RETURN_IF_ERROR(RecurrentGradients());
    TF_LSTM_OPS_RETURN_IF_ERROR(PeepholeGradients());
    TF_LSTM_OPS_RETURN_IF_ERROR(StateGradient(step_.dh, args_.h0_grad));
    return StateGradient(step_.dc, args_.c0_grad);
  }

 private:
  using Base = Pass<T>;
  using Base::batch_;
  using Base::cell_;
  using Base::device_;
  using Base::rows_;
  using Base::width_;
  using typename Base::C;

  bool is_gru() const { return args_.config.cell == CellKind::kGru; }
  const T* dz_h() const { return is_gru() ? step_.dz_h : step_.dz; }
  const Multipliers<T>& recurrent_dropout() const {
    return args_.recurrent_dropout;
  }

  Status Begin() {
    step_.cell = this->Cell();
    step_.sequence = args_.sequence;
    step_.c0 = args_.c0;
    step_.h = args_.h;
    step_.h_stride = args_.h_stride;
    step_.saved = args_.saved;
    step_.h_grad = args_.h_grad;
    step_.h_grad_stride = args_.h_grad_stride;
    step_.saved_grad = args_.saved_grad;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Widen(args_.final_h_grad, &step_.dh));
    if (this->is_lstm()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(this->Widen(args_.final_c_grad, &step_.dc));
    }
    step_.dz = args_.z_grad;
    if (!step_.dz) {
      TF_LSTM_OPS_RETURN_IF_ERROR(AllocateRows(width_, &step_.dz));
    }
    if (is_gru()) {
      TF_LSTM_OPS_RETURN_IF_ERROR(AllocateRows(width_, &step_.dz_h));
    }
    if (is_gru() || args_.weights_grad.recurrent) return FindHBefore();
    return Status();
  }

  // [rows, width], zero where no step will write.
  Status AllocateRows(int64_t width, T** data) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rows_ * width, data));
    return HasUnreadRows() ? device_.Zero(*data, rows_ * width) : Status();
  }

  // Whether the sequences are longer than the longest one.
  bool HasUnreadRows() const { return rows_ > batch_ * args_.sequence.steps; }

  Status FindHBefore() {
    HBefore<T, C> a;
    a.cell = step_.cell;
    a.sequence = args_.sequence;
    a.h0 = args_.h0;
    a.h = args_.h;
    a.h_stride = args_.h_stride;
    a.saved = args_.saved;
    TF_LSTM_OPS_RETURN_IF_ERROR(AllocateRows(cell_, &a.before));
    step_.h_before = a.before;
    return Launch("h_before", a);
  }

  template <class Arguments>
  Status Launch(const char* kernel, const Arguments& arguments) const {
    if (batch_ * cell_ == 0) return Status();
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Find(kernel, &function));
    return device_.Launch(function, batch_ * cell_, arguments);
  }

  Status AllSteps() {
    if (batch_ == 0 || cell_ == 0) return Begin();
    return RunFastest<T>(
        device_, this->KindOf(true, rows_ * width_), this->Spreads(1, width_),
        [&](const Spread* spread) {
          return spread ? AllAtOnce(*spread) : StepByStep();
        },
        [&]() -> RunResult<T> { return {step_.dz, rows_, width_, width_}; });
  }

  Status AllAtOnce(const Spread& spread) {
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin());
    BackwardSteps<T, C> a;
    a.step = step_;
    a.reaches_h0 = args_.h0_grad.data != nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(MakePersistence(
        device_, spread, batch_, args_.weights.recurrent, &a.shared));
    return this->LaunchPersistent("backward_steps", spread, &a);
  }

  Status StepByStep() {
    TF_LSTM_OPS_RETURN_IF_ERROR(Begin());
    TF_LSTM_OPS_RETURN_IF_ERROR(
        device_.Allocate(batch_ * width_, &step_.dz_step));
    CUfunction function = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Find("backward_step", &function));
    C* seen = nullptr;  // gradients of h as the gates saw it
    const int sets = recurrent_dropout().sets(this->gates_);
    if (recurrent_dropout().data) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Allocate(sets * batch_ * cell_, &seen));
    }
    for (int64_t s = args_.sequence.steps - 1; s >= 0; --s) {
      step_.step = s;
      TF_LSTM_OPS_RETURN_IF_ERROR(
          device_.Launch(function, batch_ * cell_, step_));
      if (s == 0 && !args_.h0_grad.data) break;
      TF_LSTM_OPS_RETURN_IF_ERROR(AddRecurrent(seen, sets));
    }
    return Status();
  }

  // dh += what reaches h through the recurrent weights.
  Status AddRecurrent(C* seen, int sets) const {
    const GateMatrices<const T>& w = args_.weights.recurrent;
    const T* dz = step_.dz_step;
    if (!seen) {
      return MultiplyBack(dz, batch_, w, cell_, 1, true, step_.dh, cell_);
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        MultiplyBack(dz, batch_, w, cell_, sets, false, seen, cell_));
    AddSeen<T, C> add;
    add.sequence = args_.sequence;
    add.rows = batch_;
    add.width = cell_;
    add.sets = sets;
    add.of_states = true;
    add.from = seen;
    add.dropout = recurrent_dropout();
    add.to = step_.dh;
    return AddGradient(device_, add);
  }

  // to = dz W', [rows, K]; of each gate by itself where these are several sets.
  template <class To>
  Status MultiplyBack(const T* dz, int64_t rows, const GateMatrices<const T>& w,
                      int64_t k, int sets, bool adds, To* to,
                      int64_t to_stride) const {
    const Matrix<To> product = {to, rows, k, to_stride, 1, rows * to_stride};
    if (sets == 1) {
      return Multiply(device_, this->AllColumns(dz, rows),
                      this->AllGates(w, k).Transposed(), adds, product);
    }
    return Multiply(device_, this->EachColumns(dz, rows),
                    this->EachGate(w, k).Transposed(), adds, product, sets);
  }

  // dW = rows' dz.
  Status WeightGradient(const Matrix<const T>& rows, int sets, const T* dz,
                        const GateMatrices<T>& to) const {
    const Matrix<const T> transposed = rows.Transposed();
    if (sets == 1) {
      return Multiply(device_, transposed, this->AllColumns(dz, rows.rows),
                      false, this->AllGates(to, rows.columns));
    }
    return Multiply(device_, transposed, this->EachColumns(dz, rows.rows),
                    false, this->EachGate(to, rows.columns), sets);
  }

  Status BiasGradient(const T* dz, T* to) const {
    if (!to) return Status();
    return Sum(device_, dz, rows_, width_, width_, to);
  }

  Status InputGradients() const {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        BiasGradient(step_.dz, args_.weights_grad.input_bias));
    if (args_.weights_grad.input) {
      const typename Base::Seen seen = {false, args_.x, args_.x_stride,
                                        this->input_, args_.input_dropout};
      Matrix<const T> x = {args_.x, rows_, this->input_, args_.x_stride};
      // Padding may hold anything: times a zero of dz, NaN would still be NaN.
      if (args_.input_dropout.data || !args_.sequence.all_valid() ||
          HasUnreadRows()) {
        TF_LSTM_OPS_RETURN_IF_ERROR(this->See(seen, &x));
      }
      TF_LSTM_OPS_RETURN_IF_ERROR(WeightGradient(x, this->Sets(seen), step_.dz,
                                                 args_.weights_grad.input));
    }
    return args_.x_grad ? XGradient() : Status();
  }

  Status XGradient() const {
    if (!args_.weights.input) {
      return PassGradient<T>(
          device_,
          {rows_, this->gates_, cell_, args_.config.x_gate_stride, step_.dz,
           args_.x_grad, args_.x_stride, args_.adds_to_x_grad});
    }
    const GateMatrices<const T>& w = args_.weights.input;
    const int64_t k = this->input_;
    if (!args_.input_dropout.data) {
      return MultiplyBack(step_.dz, rows_, w, k, 1, args_.adds_to_x_grad,
                          args_.x_grad, args_.x_stride);
    }
    AddSeen<T, C> add;
    add.sequence = args_.sequence;
    add.rows = rows_;
    add.width = k;
    add.sets = args_.input_dropout.sets(this->gates_);
    add.dropout = args_.input_dropout;
    C* seen = nullptr;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(add.sets * rows_ * k, &seen));
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(rows_ * k, &add.to));
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Zero(add.to, rows_ * k));
    TF_LSTM_OPS_RETURN_IF_ERROR(MultiplyBack(
        step_.dz, rows_, w, k, static_cast<int>(add.sets), false, seen, k));
    add.from = seen;
    TF_LSTM_OPS_RETURN_IF_ERROR(AddGradient(device_, add));
    return Copy(device_, CopyRows<C, T>{rows_, k, add.to, k, args_.x_grad,
                                        args_.x_stride, args_.adds_to_x_grad});
  }

  Status RecurrentGradients() const {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        BiasGradient(dz_h(), args_.weights_grad.recurrent_bias));
    if (!args_.weights_grad.recurrent) return Status();
    const typename Base::Seen seen = {false, step_.h_before, cell_, cell_,
                                      recurrent_dropout()};
    Matrix<const T> h = {step_.h_before, rows_, cell_, cell_};
    if (recurrent_dropout().data) {
      TF_LSTM_OPS_RETURN_IF_ERROR(this->See(seen, &h));
    }
    return WeightGradient(h, this->Sets(seen), dz_h(),
                          args_.weights_grad.recurrent);
  }

  Status PeepholeGradients() const {
    if (!args_.weights.has_peephole()) return Status();
    PeepholeSums<T, C> a;
    a.cell = step_.cell;
    a.sequence = args_.sequence;
    a.c0 = args_.c0;
    a.saved = args_.saved;
    a.dz = step_.dz;
    const int64_t stride = kMaxPreActivations * cell_;
    TF_LSTM_OPS_RETURN_IF_ERROR(device_.Allocate(batch_ * stride, &a.sums));
    TF_LSTM_OPS_RETURN_IF_ERROR(Launch("peephole_sums", a));
    for (int p = 0; p < kMaxPreActivations; ++p) {
      T* to = args_.weights_grad.peephole[p];
      if (!to) continue;
      TF_LSTM_OPS_RETURN_IF_ERROR(SumPartial<T>(device_, a.sums + p * cell_,
                                                batch_, cell_, stride, to));
    }
    return Status();
  }

  Status StateGradient(const C* from, const States<T>& to) const {
    if (!to.data) return Status();
    return Copy(device_,
                CopyRows<C, T>{batch_, cell_, from, cell_, to.data, to.stride});
  }

  const LayerBackward<T>& args_;
  BackwardStep<T, C> step_;
};

}  // namespace

template <class T>
Status ComputeForward(const Device& device, const LayerForward<T>& layer) {
  return layer.config.projected()
             ? ForwardProjected(device, layer)
             : ComputeCellForward<T>(device, {layer, nullptr});
}

template <class T>
Status ComputeCellForward(const Device& device, const CellForward<T>& layer) {
  return ForwardPass<T>(device, layer).Run();
}

template <class T>
Status ComputeBackward(const Device& device, const LayerBackward<T>& layer) {
  return layer.config.projected() ? BackwardProjected(device, layer)
                                  : BackwardPass<T>(device, layer).Run();
}

#define TF_LSTM_OPS_INSTANTIATE(T)                                          \
  template Status ComputeForward(const Device&, const LayerForward<T>&);    \
  template Status ComputeCellForward(const Device&, const CellForward<T>&); \
  template Status ComputeBackward(const Device&, const LayerBackward<T>&);
TF_LSTM_OPS_INSTANTIATE(float)
TF_LSTM_OPS_INSTANTIATE(double)
TF_LSTM_OPS_INSTANTIATE(Half)
TF_LSTM_OPS_INSTANTIATE(BFloat16)
#undef TF_LSTM_OPS_INSTANTIATE

}  // namespace tf_lstm_ops::cuda
