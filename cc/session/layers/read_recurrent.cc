// ReadRecurrent: the fields of a recurrent layer.

#include <cmath>

#include "session/layers/layer_kinds.h"
#include "session/layers/recurrent.h"

namespace tf_lstm_ops::session {
namespace {

// The values of `cell`, and of `directions`.
enum FileCell : uint32_t {
  kLstmCell = 1,
  kResetAfterGruCell = 2,
  kResetBeforeGruCell = 3,
  kLayerNormLstmCell = 4,
  kLayerNormGruCell = 5,
  kSimpleRnnCell = 6,
};
enum Directions : uint32_t { kForwards = 1, kBackwards = 2, kBoth = 3 };

// Numbers in the array `functions`: alpha and beta of the functions of the
// gates, the candidate and the cell state; the bound of their arguments; of an
// LSTM 1 where the forget gate is 1 - i, else 0.
constexpr int kBound = 6, kCouples = 7, kFunctionNumbers = 8;

bool HasLayerNorm(uint32_t cell) {
  return cell == kLayerNormLstmCell || cell == kLayerNormGruCell;
}

CellKind CellOf(uint32_t cell, const LstmActivations& functions) {
  switch (cell) {
    case kResetAfterGruCell:
      return CellKind::kGru;
    case kResetBeforeGruCell:
      return CellKind::kResetBeforeGru;
    case kLayerNormLstmCell:
      return CellKind::kLayerNormLstm;
    case kLayerNormGruCell:
      return CellKind::kLayerNormGru;
    case kSimpleRnnCell:
      return SimpleRnnCell(functions.gate[kGateC], functions.bound);
    default:
      return CellKind::kLstm;
  }
}

// Reads the functions of the cell, with their numbers.
LstmActivations ReadFunctions(NodeReader* reader, uint32_t cell) {
  if (HasLayerNorm(cell)) {
    constexpr auto kTanh = static_cast<uint32_t>(Activation::kTanh);
    constexpr auto kSigmoid = static_cast<uint32_t>(Activation::kSigmoid);
    reader->Activation(kTanh, kTanh);
    reader->RecurrentActivation(kSigmoid, kSigmoid);
    return {};
  }
  const NodeReader::CellFunctions read =
      reader->Functions(cell != kSimpleRnnCell, cell == kLstmCell);
  LstmActivations functions =
      KerasActivations(static_cast<Activation>(read.candidate),
                       static_cast<Activation>(read.gates));
  functions.state = static_cast<Activation>(read.state);
  const float* numbers =
      reader->FunctionNumbers(read.has_numbers, kFunctionNumbers);
  if (numbers == nullptr) return functions;
  for (int k = 0; k < kFunctionNumbers; ++k) {
    const bool may_couple = cell == kLstmCell && numbers[k] == 1;
    if (std::isfinite(numbers[k]) && (k < kBound || numbers[k] >= 0) &&
        (k < kCouples || numbers[k] == 0 || may_couple)) {
      continue;
    }
    reader->Fail("number %d of its functions is %g", k, numbers[k]);
  }
  for (int k = 0; k < 3; ++k) {
    functions.numbers[k] = {numbers[2 * k], numbers[2 * k + 1]};
  }
  functions.bound = numbers[kBound];
  functions.couples_forget_gate = numbers[kCouples] == 1;
  return functions;
}

void ReadFlags(NodeReader* reader, uint32_t cell, uint32_t directions,
               RecurrentFields* fields) {
  uint32_t allowed = kReturnsSequence | kZeroOutputForMask | kReturnsState;
  if (cell == kLayerNormLstmCell) allowed |= kCarriesNormalizedState;
  if (directions == kBackwards) allowed |= kInOrderOfComputation;
  const uint32_t flags = reader->Flags(allowed);
  const auto has = [&](Flags flag) { return (flags & flag) != 0; };
  KerasLayer& keras = fields->keras;
  keras.return_sequences = has(kReturnsSequence);
  keras.zero_output_for_mask = has(kZeroOutputForMask);
  keras.in_order_of_computation = has(kInOrderOfComputation);
  keras.options.layer_norm.carries_normalized_state =
      has(kCarriesNormalizedState);
  fields->returns_state = has(kReturnsState);
}

void ReadWeights(NodeReader* reader, uint32_t cell, int direction,
                 RecurrentFields* fields) {
  const int64_t units = fields->units, hidden = fields->hidden_size;
  const int64_t width = GateCount(fields->keras.cell) * units;
  const auto array = [&](Array index, bool is_required,
                         std::initializer_list<int64_t> sizes) {
    return reader->Array(direction, index, is_required, sizes);
  };
  KerasWeights<const float>& weights = fields->weights[direction];
  RecurrentFields::Matrices& matrices = fields->matrices[direction];
  matrices.kernel =
      reader->Matrix(direction, kKernel, fields->input_size, width);
  matrices.recurrent_kernel =
      reader->Matrix(direction, kRecurrentKernel, hidden, width);
  weights.bias = array(kBias, false, {width});
  if (cell == kResetAfterGruCell || cell == kLayerNormGruCell) {
    weights.recurrent_bias = array(kRecurrentBias, false, {width});
  }
  if (cell == kLstmCell) {
    weights.peephole = array(kPeephole, false, {3, units});
  }
  if (hidden < units) {
    matrices.projection = reader->Matrix(direction, kProjection, units, hidden);
  }
  if (HasLayerNorm(cell)) {
    weights.input_gamma = array(kInputGamma, true, {width});
    weights.recurrent_gamma = array(kRecurrentGamma, true, {width});
  }
  if (cell == kLayerNormLstmCell) {
    weights.state_gamma = array(kStateGamma, true, {units});
    weights.state_beta = array(kStateBeta, true, {units});
  }
}

}  // namespace

std::unique_ptr<Layer> ReadRecurrent(NodeReader* reader) {
  RecurrentFields fields;
  KerasLayer& keras = fields.keras;
  const uint32_t cell = reader->Cell(kLstmCell, kSimpleRnnCell);
  const uint32_t directions = reader->Directions(kForwards, kBoth);
  const bool is_both = directions == kBoth;
  fields.directions = is_both ? 2 : 1;
  fields.reads_backwards = directions != kForwards;
  keras.go_backwards = directions == kBackwards;
  fields.merge =
      static_cast<Merge>(is_both ? reader->Merge(1, 4) : reader->Merge(0, 0));
  keras.options.activations = ReadFunctions(reader, cell);
  keras.cell = CellOf(cell, keras.options.activations);
  ReadFlags(reader, cell, directions, &fields);
  fields.is_lstm = cell == kLstmCell || cell == kLayerNormLstmCell;
  fields.input_size = reader->InputSize();
  fields.units = reader->Units();
  fields.hidden_size =
      reader->HiddenSize(cell == kLstmCell ? 1 : fields.units, fields.units);
  if (cell == kLstmCell) {
    keras.cell_clip = static_cast<float>(reader->Bound1());
    if (fields.hidden_size < fields.units) {
      keras.proj_clip = static_cast<float>(reader->ProjectionBound());
    }
  }
  if (HasLayerNorm(cell)) {
    keras.options.layer_norm.epsilon = static_cast<float>(reader->Epsilon());
  }
  for (int d = 0; d < fields.directions; ++d) {
    ReadWeights(reader, cell, d, &fields);
  }
  fields.initial[0] =
      reader->InitialState(0, fields.directions, fields.hidden_size);
  if (fields.is_lstm) {
    fields.initial[1] =
        reader->InitialState(1, fields.directions, fields.units);
  }
  if (!reader->ok()) return nullptr;
  return std::make_unique<RecurrentLayer>(fields);
}

}  // namespace tf_lstm_ops::session
