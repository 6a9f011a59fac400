#include "training/arrays.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "dialects/keras/signatures.h"

namespace tf_lstm_ops::training {
namespace {

// Whether an array is a final state or the gradient with respect to one, which
// a caller may not want or have.
bool IsFinalState(std::string_view name) {
  constexpr std::string_view kFinal = "final_";
  const std::string_view of_second = keras::kBackwardPrefix;
  if (name.substr(0, of_second.size()) == of_second) {
    name.remove_prefix(of_second.size());
  }
  return name.substr(0, kFinal.size()) == kFinal;
}

// Checks all of an array but its data, and sets `to` to it. An array that is
// null has an unknown rank then, unless it has no elements.
Status Read(const char* name, const tf_lstm_ops_array& from, int32_t type,
            Array* to) {
  if (from.struct_size != sizeof(from)) {
    return InvalidArgument(name, ".struct_size is ", from.struct_size,
                           ", must be ", sizeof(from));
  }
  if (!from.data && from.rank == 0) {
    *to = Array();
    return Status();
  }
  if (from.type != type) {
    return InvalidArgument(name, ".type is ", from.type, ", must be ", type,
                           ", that of the layer");
  }
  if (from.rank < 1 || from.rank > TF_LSTM_OPS_MAX_RANK) {
    return InvalidArgument(name, ".rank is ", from.rank, ", must be from 1 to ",
                           TF_LSTM_OPS_MAX_RANK);
  }
  Shape shape = Shape::OfRank(from.rank);
  for (int axis = 0; axis < from.rank; ++axis) {
    if (from.shape[axis] < 0) {
      return InvalidArgument(name, ".shape[", axis, "] is ", from.shape[axis],
                             ", must not be negative");
    }
    shape.set_dim(axis, from.shape[axis]);
  }
  int64_t size = 0;
  if (!CheckedProduct(shape.dims(), &size)) {
    return InvalidArgument(name,
                           " is too large, has shape: ", shape.ToString());
  }
  *to = from.data || size == 0 ? Array(shape, size, from.data) : Array();
  return Status();
}

}  // namespace

Status Arrays::Inputs(const Signature& signature, Tensors* inputs,
                      Sizes* sizes) const {
  Shapes shapes;
  int n = 0;
  for (const Argument& argument : signature.inputs) {
    Array* input = &inputs->emplace_back();
    if (std::strcmp(argument.name, kMask) == 0) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Mask(*inputs, input));
    } else {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          Read(argument.name, inputs_[n++], type_, input));
      if (input->is_null() && argument.optional) {
        *input = Array(Shape({0}), 0, nullptr);
      } else if (input->is_null() && !IsFinalState(argument.name)) {
        return InvalidArgument(argument.name, " is null");
      }
    }
    shapes.push_back(input->shape());
  }
  return CheckInputs(signature, shapes, sizes);
}

// Input 0 is x [B, T, I], of any shape.
Status Arrays::Mask(const Tensors& inputs, Array* mask) const {
  const tf_lstm_ops_array& x = inputs_[0];
  if (!x.mask) {
    *mask = Array(Shape({0}), 0, nullptr);
    return Status();
  }
  if (x.mask_type != TF_LSTM_OPS_MASK && x.mask_type != TF_LSTM_OPS_LENGTHS) {
    return InvalidArgument("x.mask_type is ", x.mask_type, ", must be 0 or 1");
  }
  const Shape& shape = inputs[0].shape();
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckRank("x", shape, 3));
  const int64_t batch = shape.dim(0), time = shape.dim(1);
  int64_t size = 0;
  if (!CheckedProduct({batch, time}, &size)) {
    return InvalidArgument("x is too large, has shape: ", shape.ToString());
  }
  mask_.reset(new bool[std::max<int64_t>(size, 1)]);
  if (x.mask_type == TF_LSTM_OPS_MASK) {
    const auto* bytes = static_cast<const uint8_t*>(x.mask);
    std::transform(bytes, bytes + size, mask_.get(),
                   [](uint8_t byte) { return byte != 0; });
  } else {
    const auto* lengths = static_cast<const int32_t*>(x.mask);
    for (int64_t b = 0; b < batch; ++b) {
      if (lengths[b] < 0 || lengths[b] > time) {
        return InvalidArgument("x.mask: length ", b, " is ", lengths[b],
                               ", must be from 0 to ", time);
      }
      bool* row = mask_.get() + b * time;
      std::fill_n(row, lengths[b], true);
      std::fill_n(row + lengths[b], time - lengths[b], false);
    }
  }
  *mask = Array(Shape({batch, time}), size, mask_.get());
  return Status();
}

Status Arrays::AllocateOutput(int index, int32_t type, const Shape& shape,
                              Array* output) const {
  const char* name = signature_.outputs[index].name;
  TF_LSTM_OPS_RETURN_IF_ERROR(Read(name, outputs_[index], type, output));
  if (output->is_null()) {
    if (may_skip_ || IsFinalState(name)) return Status();
    return InvalidArgument(name, " is null");
  }
  if (!(output->shape() == shape)) {
    return InvalidArgument(name, " has shape: ", output->shape().ToString(),
                           ", must have ", shape.ToString());
  }
  return Status();
}

Status Arrays::Outputs(const Signature& signature, const Tensors& inputs,
                       const Sizes& sizes, int32_t type,
                       Tensors* outputs) const {
  int n = 0;
  for (const Argument& output : signature.outputs) {
    const Shape shape = output.like
                            ? inputs[signature.InputIndex(output.like)].shape()
                            : OutputShape(output, sizes);
    TF_LSTM_OPS_RETURN_IF_ERROR(
        AllocateOutput(n++, type, shape, &outputs->emplace_back()));
  }
  return Status();
}

}  // namespace tf_lstm_ops::training
