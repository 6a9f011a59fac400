// Kernels of the CudnnRNN family.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backends/metal/cudnn_stack.h"
#include "dialects/common/kernel_metal.h"
#include "core/dropout.h"
#include "dialects/cudnn_rnn/problem.h"
#include "core/reserve.h"
#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::metal {
namespace {

using cudnn_rnn::OpVariant;
using tf::KernelConstruction;
using tf::KernelContext;

bool HasPadding(const Problem& problem) {
  return problem.valid_steps < problem.time * problem.batch;
}

// Positive where a row takes part in a step, [T,B,1].
Call::Made Valid(const Problem& problem) {
  Call::Made valid = {"valid", {problem.time, problem.batch, 1}, {}};
  for (int64_t t = 0; t < problem.time; ++t) {
    for (const int64_t length : problem.lengths) {
      valid.numbers.push_back(t < length ? 1 : 0);
    }
  }
  return valid;
}

// Of which inner outputs the next layer sees, [L-1,T,B,D*P].
Call::Made Kept(const Problem& problem, float dropout, uint64_t key) {
  const int64_t layers = problem.model.layers - 1, rows = problem.time * problem.batch,
                width = problem.model.output_size();
  Call::Made kept = {"kept", {layers, problem.time, problem.batch, width}, {}};
  kept.numbers.assign(layers * rows * width, 1);
  const DropoutMask mask(key, dropout, rows, width);
  for (int64_t k = 0; k < layers * rows; ++k) {
    float* row = kept.numbers.data() + k * width;
    mask.Apply(k / rows, k % rows, row, row);
  }
  for (float& number : kept.numbers) number = number > 0 ? 1 : 0;
  return kept;
}

// Its bytes as numbers, which every type holds exactly.
Call::Made Header(const Problem& problem, float dropout, TF_DataType type, uint64_t key) {
  const int element_size = type == TF_FLOAT ? 4 : 2;
  uint8_t bytes[sizeof(ReserveHeader)];
  Reserve(problem, dropout, type, element_size).WriteHeader(key, bytes);
  return {"header", {sizeof bytes}, std::vector<float>(std::begin(bytes), std::end(bytes))};
}

// Keras puts a GRU's gates into cuDNN's order only where TensorFlow was built
// for CUDA. Elsewhere, and so on every Mac, its stock op comes in Keras' order,
// and the same op of a graph made with CUDA in cuDNN's.
Status CheckStock(CellKind cell) {
  if (cell != CellKind::kGru) return Status();
  return InvalidArgument("rnn_mode gru under TensorFlow's own name is ambiguous without CUDA: "
                         "Keras' GRU has its gates in another order than cuDNN there. Use "
                         "tf_lstm_ops.keras.GRU (tf_lstm_ops.keras.convert_model), "
                         "keras.layers.GRU(use_cudnn=False) or tf_lstm_ops.raw_ops");
}

template <const OpVariant& kVariant, bool kIsStock>
class StackKernel : public Kernel {
 public:
  using Kernel::Kernel;

  Status Init(const KernelConstruction& construction) override {
    constexpr bool kIsV3 = kVariant.version == 3;
    TF_LSTM_OPS_RETURN_IF_ERROR(attributes_.Init(construction, kIsV3, kIsV3));
    if (kIsStock) TF_LSTM_OPS_RETURN_IF_ERROR(CheckStock(attributes_.cell));
    return Kernel::Init(construction);
  }

 protected:
  const cudnn_rnn::Attributes& attributes() const { return attributes_; }

  Status Begin(const KernelContext& context, Call* call, Problem* problem) const {
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Fetch(context));
    TF_LSTM_OPS_RETURN_IF_ERROR(cudnn_rnn::MakeProblem(attributes_, *call, problem));
    if (HasPadding(*problem)) call->made.push_back(Valid(*problem));
    return Status();
  }

  // Numbers that the kernel made are arguments where it made them.
  static StackCall MakeStackCall(const Problem& problem, float dropout, Builder* b) {
    StackCall call = {problem, dropout, 1, 1};
    if (HasPadding(problem)) call.valid = b->Made("valid");
    return call;
  }

 private:
  cudnn_rnn::Attributes attributes_;
};

template <const OpVariant& kVariant, bool kIsStock>
class ForwardKernel : public StackKernel<kVariant, kIsStock> {
 public:
  ForwardKernel() : StackKernel<kVariant, kIsStock>(kVariant.forward()) {}

  Status Init(const KernelConstruction& construction) override {
    TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("is_training", &is_training_));
    return StackKernel<kVariant, kIsStock>::Init(construction);
  }

  Status Compute(const KernelContext& context) override {
    Call call(this->signature());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &problem));
    const float dropout = is_training_ ? this->attributes().dropout : 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(Allocate(context, problem, dropout, &call));
    uint64_t key = 0;  // of no dropout
    if (HasDropout(problem, dropout)) {
      key = dropout_keys_.Next(this->attributes().seed);
      call.made.push_back(Kept(problem, dropout, key));
    }
    if (is_training_) {
      call.made.push_back(Header(problem, dropout, this->type(), key));
    }
    return this->Run(context, call, [&](Builder* b) {
      StackCall stack = this->MakeStackCall(problem, dropout, b);
      if (HasDropout(problem, dropout)) stack.kept = b->Made("kept");
      BuildStack(stack, b->Made("header"), b);
    });
  }

 private:
  Status Allocate(const KernelContext& context, const Problem& problem, float dropout,
                  Call* call) const {
    const RnnModel& model = problem.model;
    const TF_DataType type = this->type();
    const Shape scalar((std::vector<int64_t>()));
    const int64_t reserve = ReserveLayout(problem, dropout).size();
    for (const Shape& shape :
         {problem.SequenceShape(model.output_size()), problem.StateShape(model.hidden_size),
          IsLstm(model.cell) ? problem.StateShape(model.cell_size) : scalar,
          is_training_ ? Shape({reserve}) : scalar}) {
      TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, type, shape));
    }
    if (kVariant.version == 1) return Status();
    const bool is_pair = kVariant.version == 2 && is_training_;
    TF_LSTM_OPS_RETURN_IF_ERROR(call->Allocate(context, TF_INT8, is_pair ? Shape({2}) : scalar));
    const tf::Tensor& host_reserved = call->output(4);
    std::fill_n(host_reserved.data<int8_t>(), host_reserved.size(), int8_t{0});
    return Status();
  }

  bool is_training_ = true;
  DropoutKeys dropout_keys_;
};

template <const OpVariant& kVariant, bool kIsStock>
class BackwardKernel : public StackKernel<kVariant, kIsStock> {
 public:
  BackwardKernel() : StackKernel<kVariant, kIsStock>(kVariant.backward()) {}

  Status Compute(const KernelContext& context) override {
    Call call(this->signature());
    Problem problem;
    TF_LSTM_OPS_RETURN_IF_ERROR(this->Begin(context, &call, &problem));
    TF_LSTM_OPS_RETURN_IF_ERROR(cudnn_rnn::CheckBackprop(problem, call));
    const float dropout = this->attributes().dropout;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckReserve(call.InputShape("reserve_space"), ReserveLayout(problem, dropout).size()));
    TF_LSTM_OPS_RETURN_IF_ERROR(call.AllocateAll(context, this->type()));
    return this->Run(context, call, [&](Builder* b) {
      BuildStackBackward(this->MakeStackCall(problem, dropout, b), b);
    });
  }

 private:
  // Its size is what can be told without waiting for the device.
  static Status CheckReserve(const Shape& shape, int64_t want) {
    if (shape.dim(0) == want) return Status();
    return InvalidArgument("reserve_space must have ", want, " elements but has ", shape.dim(0),
                           "; it must come unchanged from a forward call of the same op on the "
                           "same device with is_training=True and the same attributes and inputs");
  }
};

float ToFloat(float value) { return value; }
template <class T>
float ToFloat(T value) {
  return value.ToFloat();
}
void SetFloat(float value, float* to) { *to = value; }
template <class T>
void SetFloat(float value, T* to) {
  *to = T::FromFloat(value);
}

// Both tensors are in the host's memory, since the mask's shape stands in the
// reserve.
template <class T>
class DropoutMaskKernel : public tf::Kernel {
 public:
  Status Init(const KernelConstruction&) override { return Status(); }

  Status Compute(const KernelContext& context) override {
    Inputs call(cudnn_rnn::CudnnRNNDropoutMask());
    TF_LSTM_OPS_RETURN_IF_ERROR(call.Fetch(context));
    const tf::Tensor& reserve = *call.Find("reserve_space");
    ReserveHeader header;
    Shape shape;
    TF_LSTM_OPS_RETURN_IF_ERROR(ReadShape(reserve, &header, &shape));
    int64_t size = 1;
    for (const int64_t extent : shape.dims()) size *= extent;
    tf::Tensor mask;
    TF_LSTM_OPS_RETURN_IF_ERROR(context.AllocateOutput(0, tf::kDataType<T>, shape, &mask));
    const DropoutMask dropout(0, header.dropout, 0, 0);
    const T* kept = reserve.data<T>() + reserve.size() - ReserveLayout::kHeaderSize - size;
    for (int64_t k = 0; k < size; ++k) {
      const bool keeps = header.dropout == 0 || ToFloat(kept[k]) > 0;
      const double scale = header.dropout == 0 ? 1 : dropout.scale();
      SetFloat(keeps ? static_cast<float>(scale) : 0, mask.data<T>() + k);
    }
    return Status();
  }

 private:
  // Errors: InvalidArgument where a call cannot have left this.
  static Status ReadShape(const tf::Tensor& reserve, ReserveHeader* header, Shape* shape) {
    constexpr int64_t kSize = ReserveLayout::kHeaderSize;
    uint8_t bytes[kSize] = {};
    for (int64_t k = 0; k < kSize && reserve.size() >= kSize; ++k) {
      const float byte = ToFloat(reserve.data<T>()[reserve.size() - kSize + k]);
      if (byte >= 0 && byte < 256) bytes[k] = static_cast<uint8_t>(byte);
    }
    std::memcpy(header, bytes, sizeof *header);
    // The header counts the elements of the CPU's layout.
    TF_LSTM_OPS_RETURN_IF_ERROR(
        ReadHeader(bytes, Shape({header->size}), sizeof(T), header));
    *shape = Shape({header->inner_layers, header->time, header->batch, header->width});
    int64_t size = 0;
    if (header->width < 1 || !CheckedProduct(shape->dims(), &size) ||
        (header->dropout > 0 && size > reserve.size() - kSize)) {
      return InvalidArgument("reserve_space holds sizes that no call has: ", shape->ToString());
    }
    return Status();
  }
};

// Under our own name and, above the plugin's kernels, the stock one.
template <template <const OpVariant&, bool> class K, const OpVariant& kVariant>
void RegisterBoth(const Signature& signature, TF_DataType type) {
  std::vector<const char*> host_memory;
  if (kVariant.version == 3) host_memory.push_back("sequence_lengths");
  if (kVariant.version > 1) host_memory.push_back("host_reserved");
  Register<K<kVariant, false>>(signature.op, type, host_memory);
  RegisterAbove<K<kVariant, true>>(cudnn_rnn::StockName(signature), type, host_memory);
}

template <const OpVariant& kVariant>
void RegisterVariant(TF_DataType type) {
  RegisterBoth<ForwardKernel, kVariant>(kVariant.forward(), type);
  RegisterBoth<BackwardKernel, kVariant>(kVariant.backward(), type);
}

template <class T>
bool RegisterAll() {
  constexpr TF_DataType kType = tf::kDataType<T>;
  RegisterVariant<cudnn_rnn::kV1>(kType);
  RegisterVariant<cudnn_rnn::kV2>(kType);
  RegisterVariant<cudnn_rnn::kV3>(kType);
  Register<DropoutMaskKernel<T>>(cudnn_rnn::CudnnRNNDropoutMask().op, kType,
                                 {"reserve_space", "mask"});
  return true;
}

[[maybe_unused]] const bool kRegistered[] = {RegisterAll<float>(), RegisterAll<Half>(),
                                             HasBFloat16() && RegisterAll<BFloat16>()};

}  // namespace
}  // namespace tf_lstm_ops::metal
