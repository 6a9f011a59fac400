#include <algorithm>
#include <array>
#include <vector>

#include "backends/cpu/rnn.h"
#include "core/lstm_cell.h"
#include "core/rnn.h"
#include "dialects/arguments.h"
#include "dialects/mpsgraph/problem.h"
#include "dialects/mpsgraph/signatures.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::mpsgraph {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;

// Tensors without elements may be null.
template <class E>
E* At(E* data, int64_t offset) {
  return data ? data + offset : nullptr;
}

template <class T>
struct Call : Arguments<T> {
  using C = typename Arguments<T>::Compute;
  using Arguments<T>::In;
  using Arguments<T>::staging;

  const Descriptor& descriptor;
  Problem problem;
  std::vector<Schedule> schedules;  // of each direction

  Call(const Descriptor& d, const Signature& s)
      : Arguments<T>(s), descriptor(d) {}

  Status Begin(const KernelContext& context) {
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Fetch(context));
    const ShapeOf shape_of = [this](const char* name) {
      const Tensor* tensor = this->Find(name);
      return tensor ? tensor->shape() : Shape();
    };
    TF_LSTM_OPS_RETURN_IF_ERROR(MakeProblem(descriptor, shape_of, &problem));
    for (int64_t d = 0; d < problem.directions; ++d) {
      const bool reversed =
          problem.directions == 2 ? d == 1 : descriptor.reverse;
      schedules.push_back(
          Schedule::TimeMajor(problem.time, problem.batch, reversed));
    }
    source_ = In("source");
    recurrent_weight_ = In("recurrent_weight");
    input_weight_ = In("input_weight");
    bias_ = In("bias");
    init_state_ = In("init_state");
    init_cell_ = In("init_cell");
    mask_ = In("mask");
    peephole_ = In("peephole");
    return Status();
  }

  int64_t width() const { return problem.directions * problem.cell; }
  int64_t z_width() const { return problem.directions * problem.gates(); }

  // Weights of a direction, in tensors [4H,.], [8H,.] or [2,4H,.], or the
  // gradients with respect to them. Null stays null.
  template <class E>
  RnnWeights<E> Weights(int64_t direction, E* input, E* recurrent, E* bias,
                        E* peephole) const {
    const int64_t cell = problem.cell, at = direction * problem.gates();
    RnnWeights<E> weights;
    if (input) {
      weights.input = ByUnit(input + at * problem.input, problem.input, cell);
    }
    weights.recurrent = ByUnit(recurrent + at * cell, cell, cell);
    if (bias) weights.input_bias = bias + at;
    for (int p = 0; peephole && p < kMaxParts; ++p) {
      weights.peephole[p] = peephole + at + Block(p) * cell;
    }
    return weights;
  }

  // The rows that a direction keeps, in cell [T,N,D*H] and z_state [T,N,D*4H].
  template <class E>
  StepRows<E> Steps(int64_t direction, E* cells, E* z) const {
    StepRows<E> steps;
    if (cells) {
      steps.Set(kRowCs, cells + direction * problem.cell, width());
    }
    const struct {
      LstmRow row;
      LstmPart part;
    } gates[] = {
        {kRowI, kPartI}, {kRowCi, kPartC}, {kRowF, kPartF}, {kRowO, kPartO}};
    for (const auto& gate : gates) {
      if (!z) break;
      const int64_t block = direction * 4 + Block(gate.part);
      steps.Set(gate.row, z + block * problem.cell, z_width());
    }
    return steps;
  }

  // What forward and backward share.
  template <class Args>
  void SetInputs(int64_t direction, Args* args) {
    const int64_t cell = problem.cell;
    args->config.cell = CellKind::kGeneralLstm;
    args->config.bfloat16 = std::is_same_v<T, BFloat16>;
    args->config.input_size = problem.input;
    args->config.cell_size = cell;
    args->config.hidden_size = cell;
    args->config.gate_order = descriptor.gate_order;
    args->config.activations = descriptor.activations;
    args->schedule = &schedules[direction];
    args->weights =
        Weights(direction, input_weight_, recurrent_weight_, bias_, peephole_);
    args->x = At(source_, SourceColumn(direction));
    args->x_stride = problem.source_width();
    if (!problem.has_input_weight) args->config.x_gate_stride = cell;
    args->h0 = Half(init_state_, direction);
    args->c0 = Half(init_cell_, direction);
    args->dropout.recurrent = Multipliers(direction);
    args->h_stride = width();
  }

  // Where a direction's share of the source begins.
  int64_t SourceColumn(int64_t direction) const {
    return problem.has_input_weight ? 0 : direction * problem.gates();
  }

  // [N,H] of a direction, from [N,D*H]; zero from null.
  C* Half(const C* both, int64_t direction) {
    const int64_t cell = problem.cell;
    C* half = staging.Scratch(problem.batch * cell);
    if (!both) {
      std::fill(half, half + problem.batch * cell, C(0));
      return half;
    }
    for (int64_t b = 0; b < problem.batch; ++b) {
      const C* row = both + b * width() + direction * cell;
      std::copy(row, row + cell, half + b * cell);
    }
    return half;
  }

  // The inverse; nothing to null.
  void PutHalf(const C* half, int64_t direction, C* both) const {
    const int64_t cell = problem.cell;
    for (int64_t b = 0; both && b < problem.batch; ++b) {
      std::copy(half + b * cell, half + (b + 1) * cell,
                both + b * width() + direction * cell);
    }
  }

 private:
  int Block(int part) const { return descriptor.gate_order.block[part]; }

  // The mask of a direction for each gate, [4,N,H]; null where there is none.
  const C* Multipliers(int64_t direction) {
    if (!mask_) return nullptr;
    const Shape shape = this->Find("mask")->shape();
    const auto stride = [&](int from_last, int64_t step) {
      const int k = shape.rank() - from_last;
      return k < 0 || shape.dim(k) == 1 ? 0 : step;
    };
    const int64_t column = stride(1, 1);
    const int64_t row = stride(2, column == 0 ? 1 : width());
    const int64_t cell = problem.cell, size = problem.batch * cell;
    C* all = staging.Scratch(4 * size);
    for (int64_t b = 0; b < problem.batch; ++b) {
      for (int64_t u = 0; u < cell; ++u) {
        all[b * cell + u] = mask_[b * row + (direction * cell + u) * column];
      }
    }
    for (int g = 1; g < 4; ++g) std::copy(all, all + size, all + g * size);
    return all;
  }

  const C *source_, *recurrent_weight_, *input_weight_, *bias_;
  const C *init_state_, *init_cell_, *mask_, *peephole_;
};

template <class T>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("produce_cell", &produce_cell_));
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("training", &training_));
    return descriptor_.Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    Call<T> call(descriptor_, MPSGraphLSTM());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context));
    const Problem& problem = call.problem;
    const Shape none({0}), steps = problem.Steps(problem.cell);
    const bool has_cell = produce_cell_ || training_;
    constexpr TF_DataType kType = tf::kDataType<T>;
    Tensor output, cell, z_state;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(0, kType, steps, &output));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        context.AllocateOutput(1, kType, has_cell ? steps : none, &cell));
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        2, kType, training_ ? problem.Steps(problem.gates()) : none, &z_state));

    C* h = call.Out(output);
    C* cells = has_cell ? call.Out(cell) : nullptr;
    C* z = training_ ? call.Out(z_state) : nullptr;
    const int threads = cpu::ThreadCount(ConfiguredThreads(context));
    std::vector<RnnForward<C>> calls(problem.directions);
    for (int64_t d = 0; d < problem.directions; ++d) {
      call.SetInputs(d, &calls[d]);
      calls[d].h = At(h, d * problem.cell);
      calls[d].steps = call.Steps(d, cells, z);
    }
    cpu::ForwardAll(calls, threads);
    call.staging.Finish();
    return Status();
  }

 private:
  using C = typename Call<T>::C;

  Descriptor descriptor_;
  bool produce_cell_ = false;
  bool training_ = false;
};

template <class T>
class GradientsKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return descriptor_.Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    Call<T> call(descriptor_, MPSGraphLSTMGradients());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context));
    std::vector<Tensor> outputs;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.Outputs(
        call.signature, call.inputs, call.sizes, tf::kDataType<T>, &outputs));
    const Forward forward = {call.In("z_state"), call.In("cell_output_fwd")};
    const Upstream upstream = {
        call.In("source_gradient"), call.In("state_gradient"),
        call.In("cell_gradient"), call.In("cell_output_gradient"),
        call.In("z_state_gradient")};
    const auto out = [&](size_t n) {
      return outputs[n].size() > 0 ? call.Out(outputs[n]) : nullptr;
    };
    const Found found = {out(0), out(1), out(2), out(3),
                         out(4), out(5), out(6)};
    const int threads = cpu::ThreadCount(ConfiguredThreads(context));
    std::vector<RnnBackward<C>> calls(call.problem.directions);
    for (int64_t d = 0; d < call.problem.directions; ++d) {
      SetDirection(&call, d, forward, upstream, found, &calls[d]);
    }
    cpu::BackwardAll(calls, threads);
    for (int64_t d = 0; d < call.problem.directions; ++d) {
      call.PutHalf(calls[d].dh, d, found.init_state);
      call.PutHalf(calls[d].dc, d, found.init_cell);
    }
    call.staging.Finish();
    return Status();
  }

 private:
  using C = typename Call<T>::C;

  // Shapes as the op has them; null where absent or empty.
  struct Forward {
    const C *z_state, *cell;
  };
  struct Upstream {
    const C *output, *final_state, *final_cell, *cell, *z_state;
  };
  struct Found {
    C *source, *recurrent_weight, *input_weight, *bias;
    C *peephole, *init_state, *init_cell;
  };

  static void SetDirection(Call<T>* call, int64_t d, const Forward& forward,
                           const Upstream& upstream, const Found& found,
                           RnnBackward<C>* args) {
    const int64_t cell = call->problem.cell;
    call->SetInputs(d, args);
    args->steps = call->Steps(d, forward.cell, forward.z_state);
    args->bar = call->Steps(d, upstream.cell, upstream.z_state);
    args->h_bar = At(upstream.output, d * cell);
    args->dh = call->Half(upstream.final_state, d);
    args->dc = call->Half(upstream.final_cell, d);
    args->wants_initial_dh = found.init_state != nullptr;
    args->gradients =
        call->Weights(d, found.input_weight, found.recurrent_weight, found.bias,
                      found.peephole);
    args->dx = At(found.source, call->SourceColumn(d));
    args->adds_to_dx = d > 0 && call->problem.has_input_weight;
  }

  Descriptor descriptor_;
};

template <class T>
bool RegisterAll() {
  tf::RegisterKernel<ForwardKernel<T>>(MPSGraphLSTM().op, "CPU",
                                       tf::kDataType<T>);
  tf::RegisterKernel<GradientsKernel<T>>(MPSGraphLSTMGradients().op, "CPU",
                                         tf::kDataType<T>);
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::mpsgraph
