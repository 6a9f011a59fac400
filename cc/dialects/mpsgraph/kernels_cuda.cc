// Kernels of MPSGraph's LSTM and its gradients. Each direction is a layer of
// its own, side by side in the same tensors.
#include <vector>

#include "dialects/common/call_cuda.h"
#include "backends/cuda/rnn.h"
#include "core/lstm_cell.h"
#include "dialects/mpsgraph/problem.h"
#include "dialects/mpsgraph/signatures.h"

namespace tf_lstm_ops::cuda {
namespace {

using mpsgraph::Problem;
using tf::KernelConstruction;
using tf::KernelContext;

// Null stays null.
template <class E>
E* At(E* data, int64_t offset) {
  return data ? data + offset : nullptr;
}

template <class T>
class LstmKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return descriptor_.Init(construction);
  }

 protected:
  Status Begin(const KernelContext& context, Call* call,
               Problem* problem) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Begin(context));
    return mpsgraph::MakeProblem(
        descriptor_,
        [call](const char* name) { return call->InputShape(name); }, problem);
  }

  // Weights of a direction, in tensors [4H,.], [8H,.] or [2,4H,.], or the
  // gradients with respect to them. Null stays null.
  template <class E>
  RnnWeights<E> Weights(const Problem& problem, int64_t direction, E* input,
                        E* recurrent, E* bias, E* peephole) const {
    const int64_t cell = problem.cell, at = direction * problem.gates();
    RnnWeights<E> weights;
    if (input) {
      weights.input = ByUnit(input + at * problem.input, problem.input, cell);
    }
    weights.recurrent = ByUnit(recurrent + at * cell, cell, cell);
    weights.input_bias = At(bias, at);
    for (int p = 0; peephole && p < kMaxPreActivations; ++p) {
      weights.peephole[p] = peephole + at + Block(p) * cell;
    }
    return weights;
  }

  // The rows that a direction keeps, in cell [T,N,D*H] and z_state [T,N,D*4H].
  template <class E>
  SavedActivations<E> Rows(const Problem& problem, int64_t direction, E* cells,
                   E* z) const {
    SavedActivations<E> rows;
    rows.data[kSavedCs] = At(cells, direction * problem.cell);
    rows.stride[kSavedCs] = problem.directions * problem.cell;
    const struct {
      LstmSaved row;
      LstmGate part;
    } gates[] = {
        {kSavedI, kGateI}, {kSavedCi, kGateC}, {kSavedF, kGateF}, {kSavedO, kGateO}};
    for (const auto& gate : gates) {
      const int64_t block = direction * kMaxPreActivations + Block(gate.part);
      rows.data[gate.row] = At(z, block * problem.cell);
      rows.stride[gate.row] = problem.directions * problem.gates();
    }
    return rows;
  }

  // A direction's share of states [N,D*H].
  template <class E>
  static States<E> Share(const Problem& problem, int64_t direction, E* both) {
    return {At(both, direction * problem.cell),
            problem.directions * problem.cell};
  }

  // Where a direction's share of the source begins.
  static int64_t SourceColumn(const Problem& problem, int64_t direction) {
    return problem.has_input_weight ? 0 : direction * problem.gates();
  }

  // What forward and backward share.
  void SetLayer(const Call& call, const Problem& problem, int64_t direction,
                Layer<T>* layer) const {
    RnnConfig& config = layer->config;
    config.cell = CellKind::kCustomLstm;
    config.input_size = problem.input;
    config.cell_size = config.hidden_size = problem.cell;
    config.gate_order = descriptor_.gate_order;
    config.activations = descriptor_.activations;
    if (!problem.has_input_weight) config.x_gate_stride = problem.cell;
    layer->steps.batch = problem.batch;
    layer->steps.time = layer->steps.steps = problem.time;
    layer->steps.reversed =
        problem.directions == 2 ? direction == 1 : descriptor_.reverse;
    layer->weights = Weights(problem, direction, call.In<T>("input_weight"),
                             call.In<T>("recurrent_weight"), call.In<T>("bias"),
                             call.In<T>("peephole"));
    layer->x = At(call.In<T>("source"), SourceColumn(problem, direction));
    layer->x_stride = problem.source_width();
    layer->h0 = Share(problem, direction, call.In<T>("init_state"));
    layer->c0 = Share(problem, direction, call.In<T>("init_cell"));
    layer->recurrent_dropout = Mask(call, problem, direction);
  }

 private:
  int Block(int part) const { return descriptor_.gate_order.block[part]; }

  // A direction's share of what broadcasts to [N,D*H].
  static Multipliers<T> Mask(const Call& call, const Problem& problem,
                             int64_t direction) {
    const tf::Tensor* mask = call.Find("mask");
    if (!mask) return {};
    const Shape shape = mask->shape();
    const auto stride = [&](int from_last, int64_t step) {
      const int k = shape.rank() - from_last;
      return k < 0 || shape.dim(k) == 1 ? 0 : step;
    };
    const int64_t column = stride(1, 1);
    const int64_t width = column == 0 ? 1 : problem.directions * problem.cell;
    return {At(mask->data<const T>(), direction * problem.cell * column), 0,
            stride(2, width), column};
  }

  mpsgraph::Descriptor descriptor_;
};

template <class T>
class ForwardKernel : public LstmKernel<T> {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("produce_cell", &produce_cell_));
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("training", &training_));
    return LstmKernel<T>::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    Call call(mpsgraph::MPSGraphLSTM());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &problem));
    const Shape none({0}), steps = problem.Steps(problem.cell);
    const bool has_cell = produce_cell_ || training_;
    for (const Shape& shape :
         {steps, has_cell ? steps : none,
          training_ ? problem.Steps(problem.gates()) : none}) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          call.Allocate(context, tf::kDataType<T>, shape));
    }
    for (int64_t d = 0; d < problem.directions; ++d) {
      RnnForward<T> args;
      this->SetLayer(call, problem, d, &args);
      args.h = At(call.template Out<T>(0), d * problem.cell);
      args.h_stride = problem.directions * problem.cell;
      args.kept = this->Rows(problem, d, call.template Out<T>(1),
                             call.template Out<T>(2));
      TF_LSTM_OPS_RETURN_IF_ERROR(Forward(call.device(), args));
    }
    return Status();
  }

 private:
  bool produce_cell_ = false;
  bool training_ = false;
};

template <class T>
class GradientsKernel : public LstmKernel<T> {
 public:
  Status Compute(const KernelContext& context) override {
    Call call(mpsgraph::MPSGraphLSTMGradients());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &problem));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, tf::kDataType<T>));
    for (int64_t d = 0; d < problem.directions; ++d) {
      RnnBackward<T> args;
      this->SetLayer(call, problem, d, &args);
      SetSteps(call, problem, d, &args);
      SetGradients(call, problem, d, &args);
      TF_LSTM_OPS_RETURN_IF_ERROR(Backward(call.device(), args));
    }
    return Status();
  }

 private:
  void SetSteps(const Call& call, const Problem& problem, int64_t d,
                RnnBackward<T>* args) const {
    args->kept = this->Rows(problem, d, call.In<T>("cell_output_fwd"),
                            call.In<T>("z_state"));
    args->grad = this->Rows(problem, d, call.In<T>("cell_output_gradient"),
                           call.In<T>("z_state_gradient"));
    args->h_grad = At(call.In<T>("source_gradient"), d * problem.cell);
    args->h_grad_stride = problem.directions * problem.cell;
    args->final_h_grad = this->Share(problem, d, call.In<T>("state_gradient"));
    args->final_c_grad = this->Share(problem, d, call.In<T>("cell_gradient"));
  }

  void SetGradients(const Call& call, const Problem& problem, int64_t d,
                    RnnBackward<T>* args) const {
    const auto out = [&](size_t n) { return call.template Out<T>(n); };
    args->x_grad = At(out(0), this->SourceColumn(problem, d));
    args->adds_to_x_grad = d > 0 && problem.has_input_weight;
    args->weights_grad = this->Weights(problem, d, out(2), out(1), out(3), out(4));
    args->h0_grad = this->Share(problem, d, out(5));
    args->c0_grad = this->Share(problem, d, out(6));
  }
};

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  Register<ForwardKernel<T>>(mpsgraph::MPSGraphLSTM().op, kType);
  Register<GradientsKernel<T>>(mpsgraph::MPSGraphLSTMGradients().op, kType);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cuda
