// Kernels of the CudnnRNN family.
#include <algorithm>
#include <vector>

#include "dialects/common/call_cuda.h"
#include "backends/cuda/stack.h"
#include "backends/cuda/tensors.h"
#include "backends/cuda/ways.h"
#include "core/dropout.h"
#include "dialects/cudnn_rnn/dropout_mask.h"
#include "dialects/cudnn_rnn/problem.h"
#include "core/reserve.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cuda {
namespace {

using cudnn_rnn::OpVariant;
using tf::KernelConstruction;
using tf::KernelContext;

// The key of a mask stands in the reserve, on the device.
constexpr uint64_t kKeyOnDevice = 0;

// Of a cell state: null unless the model is an LSTM.
template <class T>
T* OfLstm(const Problem& problem, T* cell_state) {
  return problem.model.cell == CellKind::kLstm ? cell_state : nullptr;
}

// What forward and backward share.
template <class T, class Tensors>
void SetInputs(const Call& call, const Problem& problem, Tensors* t) {
  t->input = call.In<T>("input");
  t->input_h = call.In<T>("input_h");
  t->input_c = OfLstm(problem, call.In<T>("input_c"));
  t->params = call.In<T>("params");
}

template <class T, const OpVariant& kVariant>
class ForwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("is_training", &is_training_));
    constexpr bool kIsV3 = kVariant.version == 3;
    return attributes_.Init(construction, kIsV3, kIsV3);
  }

  Status Compute(const KernelContext& context) override {
    Call call(kVariant.forward());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cudnn_rnn::MakeProblem(attributes_, call, &problem));
    const float dropout = is_training_ ? attributes_.dropout : 0;
    const uint64_t key =
        HasDropout(problem, dropout) ? dropout_keys_.Next(attributes_.seed) : 0;
    const auto mask = MakeDropoutMask(problem, dropout, kKeyOnDevice);
    Way way;
    TF_LSTM_OPS_RETURN_IF_ERROR(ChooseWay(call.device(), problem, mask.get(),
                                          is_training_, Inputs(call, problem),
                                          &way));
    const auto stack = Stack<T>::Make(problem, mask.get(), way);
    TF_LSTM_OPS_RETURN_IF_ERROR(stack->Begin(call.device(), is_training_));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Allocate(context, problem, stack->reserve_size(), way, &call));
    if (is_training_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(WriteHeader(call, problem, dropout, key));
    }
    return stack->Forward(Tensors(call, problem));
  }

 private:
  Status Allocate(const KernelContext& context, const Problem& problem,
                  int64_t reserve_size, Way way, Call* call) const {
    constexpr TF_DataType kType = tf::kDataType<T>;
    const RnnModel& model = problem.model;
    const Shape scalar((std::vector<int64_t>()));
    const bool is_lstm = model.cell == CellKind::kLstm;
    for (const Shape& shape :
         {problem.SequenceShape(model.output_size()),
          problem.StateShape(model.hidden_size),
          is_lstm ? problem.StateShape(model.cell_size) : scalar,
          is_training_ ? Shape({reserve_size}) : scalar}) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, kType, shape));
    }
    const Device& device = call->device();
    if (!is_lstm) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device.Zero(call->Out<T>(2), 1));
    }
    if (!is_training_) {
      TF_LSTM_OPS_RETURN_IF_ERROR(device.Zero(call->Out<T>(3), 1));
    }
    if (kVariant.version == 1) return Status();
    const bool is_pair = kVariant.version == 2 && is_training_;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        call->Allocate(context, TF_INT8, is_pair ? Shape({2}) : scalar));
    // As in stock: the way, which the backward pass must take too, and a flag
    // that means nothing here.
    auto* host_reserved = call->Out<int8_t>(4);
    std::fill_n(host_reserved, call->output_size(4), int8_t{0});
    host_reserved[0] = static_cast<int8_t>(way);
    return Status();
  }

  static Status WriteHeader(const Call& call, const Problem& problem,
                            float dropout, uint64_t key) {
    uint8_t header[sizeof(ReserveHeader)];
    Reserve(problem, dropout, tf::kDataType<T>, sizeof(T))
        .WriteForeignHeader(key, call.output_size(3), header);
    return CopyFromHost(call.device(), header, sizeof header,
                        reinterpret_cast<uint8_t*>(call.Out<T>(3)));
  }

  static MultiLayerForward<T> Inputs(const Call& call,
                                             const Problem& problem) {
    MultiLayerForward<T> t = {};
    SetInputs<T>(call, problem, &t);
    return t;
  }

  MultiLayerForward<T> Tensors(const Call& call,
                                       const Problem& problem) const {
    MultiLayerForward<T> t = Inputs(call, problem);
    t.output = call.Out<T>(0);
    t.output_h = call.Out<T>(1);
    t.output_c = OfLstm(problem, call.Out<T>(2));
    t.reserve = is_training_ ? call.Out<T>(3) : nullptr;
    return t;
  }

  cudnn_rnn::Attributes attributes_;
  bool is_training_ = true;
  DropoutKeys dropout_keys_;
};

template <class T, const OpVariant& kVariant>
class BackwardKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction& construction) override {
    constexpr bool kIsV3 = kVariant.version == 3;
    return attributes_.Init(construction, kIsV3, kIsV3);
  }

  Status Compute(const KernelContext& context) override {
    Call call(kVariant.backward());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Begin(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        cudnn_rnn::MakeProblem(attributes_, call, &problem));
    TF_LSTM_OPS_RETURN_IF_ERROR(cudnn_rnn::CheckBackprop(problem, call));
    const auto mask =
        MakeDropoutMask(problem, attributes_.dropout, kKeyOnDevice);
    Way way = ChosenWay<T>(call.device(), problem, mask.get());
    if (kVariant.version > 1) {
      TF_LSTM_OPS_RETURN_IF_ERROR(ReadWay(*call.Find("host_reserved"), &way));
    }
    const auto stack = Stack<T>::Make(problem, mask.get(), way);
    TF_LSTM_OPS_RETURN_IF_ERROR(stack->Begin(call.device(), true));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserve(call.InputShape("reserve_space"), stack->reserve_size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, tf::kDataType<T>));
    if (problem.model.cell != CellKind::kLstm) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          call.device().Zero(call.Out<T>(2), call.output_size(2)));
    }
    return stack->Backward(Tensors(call, problem));
  }

 private:
  // The way of the forward pass.
  static Status ReadWay(const tf::Tensor& host_reserved, Way* way) {
    const int first =
        host_reserved.size() > 0 ? *host_reserved.data<int8_t>() : -1;
    if (first < 0 || first > static_cast<int>(Way::kOwnKernels)) {
      return InvalidArgument(
          "host_reserved must begin with the number of an algorithm, 0 to ",
          static_cast<int>(Way::kOwnKernels), ", but has ",
          host_reserved.size(), " elements, the first being ", first);
    }
    *way = static_cast<Way>(first);
    return Status();
  }

  // Its size is what can be told without waiting for the device.
  static Status CheckReserve(const Shape& shape, int64_t want) {
    if (shape.dim(0) == want) return Status();
    return InvalidArgument(
        "reserve_space must have ", want, " elements but has ", shape.dim(0),
        "; it must come unchanged from a forward call of the same op on the "
        "same device with is_training=True and the same attributes and inputs");
  }

  static MultiLayerBackward<T> Tensors(const Call& call,
                                               const Problem& problem) {
    MultiLayerBackward<T> t = {};
    SetInputs<T>(call, problem, &t);
    t.output = call.In<T>("output");
    t.reserve = call.In<T>("reserve_space");
    t.output_backprop = call.In<T>("output_backprop");
    t.output_h_backprop = call.In<T>("output_h_backprop");
    t.output_c_backprop = OfLstm(problem, call.In<T>("output_c_backprop"));
    t.input_backprop = call.Out<T>(0);
    t.input_h_backprop = call.Out<T>(1);
    t.input_c_backprop = OfLstm(problem, call.Out<T>(2));
    t.params_backprop = call.Out<T>(3);
    return t;
  }

  cudnn_rnn::Attributes attributes_;
};

template <class T, const OpVariant& kVariant>
void RegisterVariant() {
  std::vector<const char*> host_memory;
  if (kVariant.version == 3) host_memory.push_back("sequence_lengths");
  if (kVariant.version > 1) host_memory.push_back("host_reserved");
  constexpr TF_DataType kType = tf::kDataType<T>;
  Register<ForwardKernel<T, kVariant>>(kVariant.forward().op, kType, host_memory);
  Register<BackwardKernel<T, kVariant>>(kVariant.backward().op, kType, host_memory);
}

template <class T>
bool RegisterAll() {
  RegisterVariant<T, cudnn_rnn::kV1>();
  RegisterVariant<T, cudnn_rnn::kV2>();
  RegisterVariant<T, cudnn_rnn::kV3>();
  cudnn_rnn::RegisterDropoutMask<T>("GPU");
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {
    RegisterAll<float>(), RegisterAll<double>(), RegisterAll<Half>(),
    RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::cuda
