#include <algorithm>
#include <memory>

#include "dialects/arguments.h"
#include "dialects/cudnn_rnn/dropout.h"
#include "dialects/cudnn_rnn/dropout_mask.h"
#include "dialects/cudnn_rnn/model.h"
#include "dialects/cudnn_rnn/reserve.h"
#include "dialects/cudnn_rnn/signatures.h"
#include "dialects/cudnn_rnn/stack.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using tf::KernelConstruction;
using tf::KernelContext;
using tf::Tensor;

template <class T>
struct Call : Arguments<T> {
  using C = typename Arguments<T>::Compute;
  using Arguments<T>::Find;
  using Arguments<T>::In;

  Problem problem;

  explicit Call(const Signature& s) : Arguments<T>(s) {}

  Status Begin(const KernelContext& context, const Attributes& attributes) {
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Fetch(context));
    return MakeProblem(attributes, *this, &problem);
  }

  bool is_lstm() const { return problem.model.cell == CellKind::kLstm; }

  // Of a cell state: null unless the model is an LSTM.
  const C* InCell(const char* name) { return is_lstm() ? In(name) : nullptr; }
};

template <class T, const Form& kForm>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("is_training", &is_training_));
    return attributes_.Init(construction, kForm.version == 3,
                            kForm.version == 3);
  }

  Status Compute(const KernelContext& context) override {
    Call<T> call(kForm.forward());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context, attributes_));
    const Problem& problem = call.problem;
    const float dropout = is_training_ ? attributes_.dropout : 0;
    const Reserve reserve(problem, dropout, tf::kDataType<T>, sizeof(T));
    Outputs outputs;
    TF_LSTM_OPS_RETURN_IF_ERROR(Allocate(context, call, reserve, &outputs));

    // No key without dropout, so that equal calls leave equal bits.
    const uint64_t key =
        HasMask(problem, dropout) ? dropout_keys_.Next(attributes_.seed) : 0;
    const auto mask = MakeMask(problem, dropout, key);
    ForwardTensors<typename Call<T>::C> t = {};
    t.input = call.In("input");
    t.input_h = call.In("input_h");
    t.input_c = call.InCell("input_c");
    t.params = call.In("params");
    t.output = call.Out(outputs.output);
    t.output_h = call.Out(outputs.output_h);
    if (call.is_lstm()) {
      t.output_c = call.Out(outputs.output_c);
    } else {
      *outputs.output_c.template data<T>() = T{};
    }
    T* kept = outputs.reserve.template data<T>();
    if (is_training_) {
      reserve.WriteHeader(key, kept);
      t.reserve = call.staging.Out(kept + reserve.body(), reserve.body_size());
    } else {
      *kept = T{};
    }
    Stack<T>(problem, reserve, mask.get(),
             cpu::ThreadCount(this->ConfiguredThreads(context)), &call.staging)
        .Forward(t);
    call.staging.Finish();
    return Status();
  }

 private:
  struct Outputs {
    Tensor output, output_h, output_c, reserve, host_reserved;
  };

  Status Allocate(const KernelContext& context, const Call<T>& call,
                  const Reserve& reserve, Outputs* outputs) const {
    constexpr TF_DataType kType = tf::kDataType<T>;
    const Problem& problem = call.problem;
    const RnnModel& model = problem.model;
    const Shape scalar((std::vector<int64_t>()));
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        0, kType, problem.SequenceShape(model.output_size()),
        &outputs->output));
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        1, kType, problem.StateShape(model.hidden_size), &outputs->output_h));
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        2, kType, call.is_lstm() ? problem.StateShape(model.cell_size) : scalar,
        &outputs->output_c));
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        3, kType, is_training_ ? Shape({reserve.size()}) : scalar,
        &outputs->reserve));
    if (kForm.version == 1) return Status();
    // Stock keeps the choice of an algorithm here; ours is always the same.
    const bool is_pair = kForm.version == 2 && is_training_;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(
        4, TF_INT8, is_pair ? Shape({2}) : scalar, &outputs->host_reserved));
    std::fill_n(outputs->host_reserved.template data<int8_t>(),
                outputs->host_reserved.size(), int8_t{0});
    return Status();
  }

  Attributes attributes_;
  bool is_training_ = true;
  DropoutKeys dropout_keys_;
};

template <class T, const Form& kForm>
class BackwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    return attributes_.Init(construction, kForm.version == 3,
                            kForm.version == 3);
  }

  Status Compute(const KernelContext& context) override {
    Call<T> call(kForm.backward());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context, attributes_));
    TF_LSTM_OPS_RETURN_IF_ERROR(CheckBackprop(call.problem, call));
    const Reserve reserve(call.problem, attributes_.dropout, tf::kDataType<T>,
                          sizeof(T));
    const Tensor& kept = *call.Find("reserve_space");
    uint64_t key = 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        reserve.Check(kept.data<T>(), kept.shape(), &key));
    std::vector<Tensor> outputs;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.Outputs(
        call.signature, call.inputs, Sizes(), tf::kDataType<T>, &outputs));
    const auto mask = MakeMask(call.problem, attributes_.dropout, key);
    Stack<T> stack(call.problem, reserve, mask.get(),
                   cpu::ThreadCount(this->ConfiguredThreads(context)),
                   &call.staging);
    stack.Backward(Tensors(&call, reserve, kept, outputs));
    call.staging.Finish();
    return Status();
  }

 private:
  using C = typename Call<T>::C;

  static BackwardTensors<C> Tensors(Call<T>* call, const Reserve& reserve,
                                    const Tensor& kept,
                                    const std::vector<Tensor>& outputs) {
    BackwardTensors<C> t = {};
    t.input = call->In("input");
    t.input_h = call->In("input_h");
    t.input_c = call->InCell("input_c");
    t.params = call->In("params");
    t.output = call->In("output");
    t.reserve =
        call->staging.In(kept.data<T>() + reserve.body(), reserve.body_size());
    t.output_backprop = call->In("output_backprop");
    t.output_h_backprop = call->In("output_h_backprop");
    t.output_c_backprop = call->InCell("output_c_backprop");
    t.input_backprop = call->Out(outputs[0]);
    t.input_h_backprop = call->Out(outputs[1]);
    if (call->is_lstm()) {
      t.input_c_backprop = call->Out(outputs[2]);
    } else {
      T* unused = outputs[2].data<T>();
      std::fill(unused, unused + outputs[2].size(), T{});
    }
    t.params_backprop = call->Out(outputs[3]);
    return t;
  }

  Attributes attributes_;
};

// Under our own name and, since stock TensorFlow has no such kernel for the
// CPU, under the stock one.
template <class K>
void Register(const Signature& signature, TF_DataType type) {
  tf::RegisterKernel<K>(signature.op, "CPU", type);
  tf::RegisterKernel<K>(StockName(signature), "CPU", type);
}

template <class T, const Form& kForm>
void RegisterForm() {
  Register<ForwardKernel<T, kForm>>(kForm.forward(), tf::kDataType<T>);
  Register<BackwardKernel<T, kForm>>(kForm.backward(), tf::kDataType<T>);
}

template <class T>
bool RegisterAll() {
  RegisterForm<T, kV1>();
  RegisterForm<T, kV2>();
  RegisterForm<T, kV3>();
  RegisterDropoutMask<T>("CPU");
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cudnn_rnn
