#include "session/node_reader.h"

#include <algorithm>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "backends/cpu/weights/weight_format.h"
#include "core/activation.h"
#include "session/field_checks.h"

namespace tf_lstm_ops::session {
namespace {

constexpr const char* kArrayNames[kArrays] = {
    "kernel",      "recurrent_kernel", "bias",        "recurrent_bias",
    "peephole",    "projection",       "input_gamma", "recurrent_gamma",
    "state_gamma", "state_beta"};
constexpr const char* kInitialNames[] = {"initial_h", "initial_c"};
constexpr uint32_t kFirstWithNumbers =
    static_cast<uint32_t>(Activation::kAffine);
constexpr uint32_t kEndWithNumbers =
    static_cast<uint32_t>(Activation::kEndWithNumbers);
constexpr auto kRelu = static_cast<uint32_t>(Activation::kRelu);
constexpr auto kTanh = static_cast<uint32_t>(Activation::kTanh);
constexpr uint32_t kLastOfCells = static_cast<uint32_t>(Activation::kCount) - 1;

// What version 1 has.
constexpr uint32_t kLastFunction1 = 16;
constexpr uint32_t kFlags1 = 15;

}  // namespace

NodeReader::NodeReader(const FileView& file, const NodeRecord& record,
                       uint32_t index, Error* error)
    : file_(file),
      record_(record),
      kind_(record.layer.kind),
      operand_count_(record.operand_count),
      index_(index),
      error_(error) {
  record_.layer.kind = 0;
  // The graph reads these.
  record_.first_operand = record_.operand_count = record_.batch_axes = 0;
}

void NodeReader::Fail(const char* format, ...) {
  if (!ok_) return;
  ok_ = false;
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  FailInLayer(error_, kDataLoss, index_, ": %s", text);
}

bool NodeReader::Finish() {
  if (!ok_) return false;
  const LayerRecord& layer = record_.layer;
  const bool has_reserved_states =
      file_.version == 1 && (layer.initial[0] != 0 || layer.initial[1] != 0);
  if (record_.reserved != 0 || has_reserved_states ||
      !AllZero(record_.reserved_bytes, sizeof(record_.reserved_bytes))) {
    Fail("a reserved byte is not 0");
  }
  const struct {
    const char* name;
    uint64_t value;
  } integers[] = {
      {"cell", layer.cell},
      {"directions", layer.directions},
      {"merge", layer.merge},
      {"activation", layer.activation},
      {"recurrent_activation", layer.recurrent_activation},
      {"input_size", layer.input_size},
      {"units", layer.units},
      {"hidden_size", layer.hidden_size},
  };
  Flags(0);
  if (!has_matrix_) InRange("weights", layer.weights, kFloat32, kFloat32);
  for (const auto& field : integers) InRange(field.name, field.value, 0, 0);
  if (layer.number != 0) NumberFails("number", layer.number, "0");
  if (layer.epsilon != 0) NumberFails("epsilon", layer.epsilon, "0");
  if (layer.proj_clip != 0) NumberFails("proj_clip", layer.proj_clip, "0");
  for (int d = 0; d < kMaxDirections; ++d) {
    for (int a = 0; a < kArrays; ++a) {
      if (layer.arrays[d][a] == 0) continue;
      ArrayFails(kArrayNames[a], d, layer.arrays[d][a],
                 "must be 0 in this layer");
    }
  }
  for (int k = 0; k < 2; ++k) {
    if (layer.initial[k] == 0) continue;
    ArrayFails(kInitialNames[k], 0, layer.initial[k],
               "must be 0 in this layer");
  }
  for (const int64_t value : record_.ints) {
    if (value != 0) Fail("an integer that this layer does not have is not 0");
  }
  for (const double value : record_.numbers) {
    if (value != 0) Fail("a number that this layer does not have is not 0");
  }
  return ok_;
}

uint64_t NodeReader::InRange(const char* name, uint64_t value, uint64_t low,
                             uint64_t high) {
  FieldText wrong;
  if (session::InRange(name, value, low, high, &wrong)) return value;
  Fail("%s", wrong.text);
  return low;
}

template <class T>
T NodeReader::Take(T* field) {
  const T value = *field;
  *field = {};
  return value;
}

int64_t NodeReader::Size(const char* name, uint64_t* field, int64_t low,
                         int64_t high) {
  return static_cast<int64_t>(InRange(name, Take(field),
                                      static_cast<uint64_t>(low),
                                      static_cast<uint64_t>(high)));
}

uint32_t NodeReader::Cell(uint32_t low, uint32_t high) {
  return InRange("cell", Take(&record_.layer.cell), low, high);
}
uint32_t NodeReader::Directions(uint32_t low, uint32_t high) {
  return InRange("directions", Take(&record_.layer.directions), low, high);
}
uint32_t NodeReader::Merge(uint32_t low, uint32_t high) {
  return InRange("merge", Take(&record_.layer.merge), low, high);
}
uint32_t NodeReader::Activation(uint32_t low, uint32_t high) {
  if (file_.version == 1) high = std::min(high, kLastFunction1);
  return InRange("activation", Take(&record_.layer.activation), low, high);
}
uint32_t NodeReader::RecurrentActivation(uint32_t low, uint32_t high) {
  return InRange("recurrent_activation",
                 Take(&record_.layer.recurrent_activation), low, high);
}

NodeReader::CellFunctions NodeReader::Functions(bool has_gates,
                                                bool has_state) {
  CellFunctions found = {};
  const auto read = [&](const char* name, uint32_t value) {
    const bool is_with_numbers = file_.version > 1 &&
                                 value >= kFirstWithNumbers &&
                                 value < kEndWithNumbers;
    found.has_numbers = found.has_numbers || is_with_numbers;
    const bool is_of_plain_rnn_1 = file_.version == 1 && !has_gates;
    const uint32_t low = is_of_plain_rnn_1 ? kRelu : 0;
    const uint32_t high = is_of_plain_rnn_1 ? kTanh : kLastOfCells;
    return is_with_numbers
               ? value
               : static_cast<uint32_t>(InRange(name, value, low, high));
  };
  found.candidate = read("activation", Take(&record_.layer.activation));
  const uint32_t gates = Take(&record_.layer.recurrent_activation);
  found.gates =
      has_gates
          ? read("recurrent_activation", gates)
          : static_cast<uint32_t>(InRange("recurrent_activation", gates, 0, 0));
  const int64_t state = Int(0, "the function of the cell state", 0,
                            has_state ? kEndWithNumbers : 0);
  found.state = state == 0 ? found.candidate
                           : read("the function of the cell state",
                                  static_cast<uint32_t>(state - 1));
  return found;
}

uint32_t NodeReader::Flags(uint32_t allowed) {
  if (file_.version == 1) allowed &= kFlags1;
  const uint32_t flags = Take(&record_.layer.flags);
  if ((flags & ~allowed) == 0) return flags;
  Fail("flags is %" PRIu32 ", may contain the bits of %" PRIu32 " only", flags,
       allowed);
  return 0;
}

int64_t NodeReader::InputSize(int64_t low, int64_t high) {
  if (file_.version == 1) low = std::max<int64_t>(low, 1);
  return Size("input_size", &record_.layer.input_size, low, high);
}
int64_t NodeReader::Units(int64_t low, int64_t high) {
  return Size("units", &record_.layer.units, low, high);
}
int64_t NodeReader::HiddenSize(int64_t low, int64_t high) {
  return Size("hidden_size", &record_.layer.hidden_size, low, high);
}

int64_t NodeReader::Int(int k, const char* name, int64_t low, int64_t high) {
  const int64_t value = Take(&record_.ints[k]);
  if (value >= low && value <= high) return value;
  Fail("%s is %" PRId64 ", must be from %" PRId64 " to %" PRId64, name, value,
       low, high);
  return low;
}

double NodeReader::Number(int k, const char* name) {
  const double value = Take(&record_.numbers[k]);
  if (std::fabs(value) <= FLT_MAX) return value;
  NumberFails(name, value, "a finite float");
  return 0;
}

double NodeReader::Number1() {
  const double value = Take(&record_.layer.number);
  if (std::fabs(value) <= FLT_MAX) return value;
  NumberFails("number", value, "a finite float");
  return 0;
}

double NodeReader::Bound(const char* name, double value) {
  if (value >= 0 && value <= FLT_MAX) return value;
  NumberFails(name, value, "0 or a positive finite float");
  return 0;
}
double NodeReader::Bound1() {
  return Bound("number", Take(&record_.layer.number));
}
double NodeReader::ProjectionBound() {
  return Bound("proj_clip", Take(&record_.layer.proj_clip));
}

double NodeReader::Epsilon() {
  const double value = Take(&record_.layer.epsilon);
  if (value >= FLT_MIN && value <= FLT_MAX) return value;
  NumberFails("epsilon", value, "a positive finite float");
  return 1;
}

void NodeReader::NumberFails(const char* name, double value,
                             const char* wanted) {
  Fail("%s is %g, must be %s", name, value, wanted);
}

void NodeReader::ArrayFails(const char* name, int direction, uint64_t offset,
                            const char* what) {
  Fail("offset of array %s of direction %d is %" PRIu64 ", %s", name, direction,
       offset, what);
}

NodeReader::Place NodeReader::PlaceOf(int direction, int array) {
  return {kArrayNames[array], direction,
          &record_.layer.arrays[direction][array]};
}

const float* NodeReader::Array(int direction, int array, bool is_required,
                               std::initializer_list<int64_t> sizes) {
  return reinterpret_cast<const float*>(
      Bytes(PlaceOf(direction, array), is_required, sizes, sizeof(float)));
}

const float* NodeReader::FunctionNumbers(bool is_required, int64_t count) {
  return file_.version == 1 ? nullptr
                            : Array(0, kFunctions, is_required, {count});
}

const float* NodeReader::InitialState(int k, int64_t directions, int64_t size) {
  const Place place = {kInitialNames[k], 0, &record_.layer.initial[k]};
  if (file_.version == 1) return nullptr;
  return reinterpret_cast<const float*>(
      Bytes(place, false, {directions, size}, sizeof(float)));
}

GateMatrices<const float> NodeReader::Matrix(int direction, int array,
                                             int64_t depth, int64_t columns) {
  if (record_.layer.weights == kInt8) {
    InRange("the number of rows of a matrix of int8",
            static_cast<uint64_t>(depth), 1, cpu::kMostInt8Rows);
  }
  return Typed(direction, array, depth, columns, columns);
}

GateMatrices<const float> NodeReader::Table(int array, int64_t rows,
                                            int64_t columns) {
  return Typed(0, array, rows, columns, rows);
}

GateMatrices<const float> NodeReader::Typed(int direction, int array,
                                            int64_t rows, int64_t columns,
                                            int64_t scales) {
  has_matrix_ = true;
  GateMatrices<const float> matrix;
  matrix.row_stride = matrix.gate_stride = columns;
  matrix.column_stride = 1;
  const uint64_t offset = record_.layer.arrays[direction][array];
  switch (InRange("weights", record_.layer.weights, kFloat32,
                  file_.version == 1 ? kFloat32 : kBFloat16Products)) {
    case kBFloat16:
    case kBFloat16Products:
      matrix.rounds_factors = record_.layer.weights == kBFloat16Products;
      matrix.bfloat16 = reinterpret_cast<const BFloat16*>(Bytes(
          PlaceOf(direction, array), true, {rows, columns}, sizeof(BFloat16)));
      break;
    case kInt8: {
      // The scales, of four bytes each, are followed by the integers.
      const char* bytes = Bytes(PlaceOf(direction, array), true,
                                {rows, columns}, 1, 4 * scales);
      if (bytes == nullptr) break;
      matrix.scales = reinterpret_cast<const float*>(bytes);
      matrix.int8 = reinterpret_cast<const int8_t*>(matrix.scales + scales);
      CheckInt8(kArrayNames[array], direction, offset, matrix, scales,
                rows * columns);
      break;
    }
    default:
      matrix.data = Array(direction, array, true, {rows, columns});
  }
  return matrix;
}

void NodeReader::CheckInt8(const char* name, int direction, uint64_t offset,
                           const GateMatrices<const float>& matrix,
                           int64_t scales, int64_t elements) {
  for (int64_t k = 0; k < scales; ++k) {
    if (matrix.scales[k] >= 0 && matrix.scales[k] <= FLT_MAX) continue;
    return ArrayFails(name, direction, offset,
                      "a scale must be finite and not negative");
  }
  if (std::find(matrix.int8, matrix.int8 + elements, INT8_MIN) !=
      matrix.int8 + elements) {
    ArrayFails(name, direction, offset, "an integer must not be -128");
  }
}

const char* NodeReader::Bytes(const Place& place, bool is_required,
                              std::initializer_list<int64_t> sizes,
                              uint64_t element, uint64_t before) {
  const uint64_t offset = Take(place.offset);
  if (!ok_) return nullptr;
  const auto fails = [&](const char* what) -> const char* {
    ArrayFails(place.name, place.direction, offset, what);
    return nullptr;
  };
  if (offset == 0) {
    return is_required ? fails("the array must be present") : nullptr;
  }
  if (offset % kAlignment != 0) return fails("must be a multiple of 64");
  if (offset < file_.first) return fails("must lie behind the records");
  uint64_t bytes = element;
  bool fits = true;
  for (const int64_t size : sizes) {
    fits = fits &&
           !__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  }
  fits = fits && !__builtin_add_overflow(bytes, before, &bytes);
  if (!fits || offset > file_.size || bytes > file_.size - offset) {
    char text[100];
    std::snprintf(text, sizeof(text),
                  "its %" PRIu64 " bytes must end within the file's %" PRIu64,
                  fits ? bytes : ~uint64_t{0}, file_.size);
    return fails(text);
  }
  if (bytes > file_.room) {
    return fails("all arrays must not have more bytes than the file");
  }
  file_.room -= bytes;
  return static_cast<const char*>(file_.data) + offset;
}

}  // namespace tf_lstm_ops::session
