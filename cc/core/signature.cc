#include "core/signature.h"

#include <cstring>
#include <limits>
#include <string>

namespace tf_lstm_ops {
namespace {

const char* Describe(Extent extent) {
  switch (extent) {
    case Extent::kTime:
      return "time_length";
    case Extent::kBatch:
      return "batch_size";
    case Extent::kInput:
      return "input_size";
    case Extent::kCell:
      return "cell_size";
    case Extent::kFourCell:
      return "cell_size * 4";
    case Extent::kInputPlusCell:
      return "input_size + cell_size";
    case Extent::kThree:
      return "3";
    case Extent::kFour:
      return "4";
    case Extent::kOne:
      return "1";
    case Extent::kTwo:
      return "2";
    case Extent::kThreeCell:
      return "cell_size * 3";
    case Extent::kHidden:
      return "hidden_size";
    case Extent::kTwoCell:
      return "cell_size * 2";
    case Extent::kTwoHidden:
      return "hidden_size * 2";
    case Extent::kOpaque:
      return "?";
  }
  return "?";
}

int64_t* Basic(Extent extent, Sizes* sizes) {
  switch (extent) {
    case Extent::kTime:
      return &sizes->time;
    case Extent::kBatch:
      return &sizes->batch;
    case Extent::kInput:
      return &sizes->input;
    case Extent::kCell:
      return &sizes->cell;
    case Extent::kHidden:
      return &sizes->hidden;
    default:
      return nullptr;
  }
}

Status CheckRanks(const Signature& signature, const Shapes& inputs) {
  for (size_t n = 0; n < inputs.size(); ++n) {
    const Argument& argument = signature.inputs[n];
    // Most inputs pass here, in a few cycles.
    if (inputs[n].rank() == argument.dims.rank) continue;
    if (!inputs[n].rank_known() || IsAbsent(argument, inputs[n])) continue;
    if (argument.dims.rank == kAnyRank) continue;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        CheckRank(argument.name, inputs[n], argument.dims.rank));
  }
  return Status();
}

// Checks that the state [B,H] has units. A batch of no rows is allowed.
Status CheckHasUnits(const Signature& signature, const Shapes& inputs) {
  for (size_t n = 0; n < inputs.size(); ++n) {
    const Dims& dims = signature.inputs[n].dims;
    const bool is_state = dims.rank == 2 && dims.extents[0] == Extent::kBatch &&
                          dims.extents[1] == Extent::kCell;
    if (!is_state || !inputs[n].rank_known()) continue;
    if (inputs[n].dim(1) == 0) {
      return InvalidArgument(signature.inputs[n].name,
                             " is empty, has shape: ", inputs[n].ToString());
    }
    return Status();
  }
  return Status();
}

// Returns the name of the argument that defines `extent`, for messages.
const char* Owner(const Signature& signature, Extent extent) {
  for (const Argument& argument : signature.inputs) {
    for (int k = 0; k < argument.dims.rank; ++k) {
      if (argument.dims.extents[k] == extent) return argument.name;
    }
  }
  return signature.inputs.front().name;
}

// Checks that every product of sizes that the engine computes fits into int64.
// kBytes covers the size of an element and the seven outputs of a step.
Status CheckOverflow(const Signature& signature, const Sizes& sizes) {
  const auto or_one = [](int64_t size) { return size == kUnknown ? 1 : size; };
  constexpr int64_t kBytes = 8 * sizeof(double);
  const int64_t time = or_one(sizes.time), batch = or_one(sizes.batch),
                input = or_one(sizes.input), cell = or_one(sizes.cell);
  int64_t product = 0;
  if (!CheckedProduct({cell, 4, kBytes}, &product)) {
    return InvalidArgument(Owner(signature, Extent::kCell),
                           ": cell_size * 4 overflows: cell_size is ", cell);
  }
  if (input > std::numeric_limits<int64_t>::max() - cell ||
      !CheckedProduct({input + cell, 4, cell, kBytes}, &product)) {
    return InvalidArgument(
        Owner(signature, Extent::kInput),
        ": (input_size + cell_size) * cell_size * 4 overflows: input_size is ",
        input, ", cell_size is ", cell);
  }
  for (const int64_t width : {input, cell * 4}) {
    if (!CheckedProduct({time, batch, width, kBytes}, &product)) {
      return InvalidArgument(
          Owner(signature, Extent::kBatch),
          ": time_length * batch_size * width overflows: time_length is ", time,
          ", batch_size is ", batch, ", width is ", width);
    }
  }
  return Status();
}

Status CheckDims(const Signature& signature, const Shapes& inputs,
                 const Sizes& sizes) {
  for (size_t n = 0; n < inputs.size(); ++n) {
    const Argument& argument = signature.inputs[n];
    if (!inputs[n].rank_known() || IsAbsent(argument, inputs[n])) continue;
    for (int k = 0; k < argument.dims.rank; ++k) {
      const Extent extent = argument.dims.extents[k];
      if (extent == Extent::kOpaque) continue;
      const int64_t want = sizes.Value(extent);
      if (want == kUnknown || want == inputs[n].dim(k)) continue;
      TF_LSTM_OPS_RETURN_IF_ERROR(
          CheckDim(argument.name, inputs[n], k, Describe(extent), want));
    }
  }
  return Status();
}

}  // namespace

int64_t Sizes::Value(Extent extent) const {
  switch (extent) {
    case Extent::kTime:
      return time;
    case Extent::kBatch:
      return batch;
    case Extent::kInput:
      return input;
    case Extent::kCell:
      return cell;
    case Extent::kFourCell:
      return cell == kUnknown ? kUnknown : cell * 4;
    case Extent::kInputPlusCell:
      return input == kUnknown || cell == kUnknown ? kUnknown : input + cell;
    case Extent::kThree:
      return 3;
    case Extent::kFour:
      return 4;
    case Extent::kOne:
      return 1;
    case Extent::kTwo:
      return 2;
    case Extent::kThreeCell:
      return cell == kUnknown ? kUnknown : cell * 3;
    case Extent::kHidden:
      return hidden;
    case Extent::kTwoCell:
      return cell == kUnknown ? kUnknown : cell * 2;
    case Extent::kTwoHidden:
      return hidden == kUnknown ? kUnknown : hidden * 2;
    case Extent::kOpaque:
      return kUnknown;
  }
  return kUnknown;
}

int Signature::InputIndex(const char* name) const {
  for (size_t n = 0; n < inputs.size(); ++n) {
    if (std::strcmp(inputs[n].name, name) == 0) return static_cast<int>(n);
  }
  return -1;
}

bool IsAbsent(const Argument& argument, const Shape& shape) {
  return argument.optional && shape.rank_known() && shape.rank() == 1 &&
         shape.dim(0) == 0;
}

Status CheckRank(const char* name, const Shape& shape, int want) {
  if (!shape.rank_known() || shape.rank() == want) return Status();
  return InvalidArgument(name, " must be rank ", want, " but is rank ",
                         shape.rank());
}

Status CheckDim(const char* name, const Shape& shape, int k, const char* what,
                int64_t want) {
  const int64_t got = shape.dim(k);
  if (got == kUnknown || got == want) return Status();
  return InvalidArgument(name, ".dim_size(", k, ") != ", what, ": ", got,
                         " vs. ", want);
}

Status CheckInputs(const Signature& signature, const Shapes& inputs,
                   Sizes* sizes) {
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckRanks(signature, inputs));
  *sizes = Sizes();
  for (size_t n = 0; n < inputs.size(); ++n) {
    const Argument& argument = signature.inputs[n];
    if (!inputs[n].rank_known() || IsAbsent(argument, inputs[n])) continue;
    for (int k = 0; k < argument.dims.rank; ++k) {
      int64_t* size = Basic(argument.dims.extents[k], sizes);
      if (size != nullptr && *size == kUnknown) *size = inputs[n].dim(k);
    }
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckHasUnits(signature, inputs));
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckOverflow(signature, *sizes));
  return CheckDims(signature, inputs, *sizes);
}

Shape OutputShape(const Argument& output, const Sizes& sizes) {
  Shape shape = Shape::OfRank(output.dims.rank);
  for (int k = 0; k < output.dims.rank; ++k) {
    shape.set_dim(k, sizes.Value(output.dims.extents[k]));
  }
  return shape;
}

}  // namespace tf_lstm_ops
