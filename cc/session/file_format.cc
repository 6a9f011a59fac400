#include "session/file_format.h"

#include <algorithm>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace tf_lstm_ops::session {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the file's numbers are read in place");

constexpr uint8_t kMagic[8] = {0x89, 0x54, 0x4C, 0x4F, 0x53, 0x0D, 0x0A, 0x1A};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxLayers = 1024;
// With it no product of sizes overflows: I and P are at most 2^25, G H at most
// 2^26.
constexpr uint64_t kMaxSize = uint64_t{1} << 24;
constexpr uint64_t kAlignment = 64;

constexpr const char* kArrayNames[kArrays] = {
    "kernel",      "recurrent_kernel", "bias",        "recurrent_bias",
    "peephole",    "projection",       "input_gamma", "recurrent_gamma",
    "state_gamma", "state_beta"};

bool AllZero(const uint8_t* bytes, size_t count) {
  return std::all_of(bytes, bytes + count, [](uint8_t b) { return b == 0; });
}

bool CheckHeader(const FileHeader& header, uint64_t size, Error* error) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return Fail(error, kDataLoss,
                "header: magic is not that of a session's file");
  }
  if (header.version == 0) {
    return Fail(error, kDataLoss, "header: version is 0, must be %" PRIu32,
                kVersion);
  }
  if (header.version > kVersion) {
    return Fail(error, kUnimplemented,
                "header: version is %" PRIu32
                ", this library reads versions up to %" PRIu32,
                header.version, kVersion);
  }
  if (header.layer_count < 1 || header.layer_count > kMaxLayers) {
    return Fail(error, kDataLoss,
                "header: layer_count is %" PRIu32
                ", must be from 1 to %" PRIu32,
                header.layer_count, kMaxLayers);
  }
  if (header.file_size != size) {
    return Fail(error, kDataLoss,
                "header: file_size is %" PRIu64 ", the file has %" PRIu64
                " bytes",
                header.file_size, size);
  }
  if (size % kAlignment != 0) {
    return Fail(error, kDataLoss,
                "header: file_size is %" PRIu64 ", must be a multiple of 64",
                size);
  }
  const uint64_t records =
      sizeof(FileHeader) + header.layer_count * sizeof(LayerRecord);
  if (size < records) {
    return Fail(error, kDataLoss,
                "header: file_size is %" PRIu64 ", must be at least %" PRIu64
                " for %" PRIu32 " layers",
                size, records, header.layer_count);
  }
  if (header.input_size < 1 || header.input_size > kMaxSize) {
    return Fail(error, kDataLoss,
                "header: input_size is %" PRIu64 ", must be from 1 to %" PRIu64,
                header.input_size, kMaxSize);
  }
  if (!AllZero(header.reserved, sizeof(header.reserved))) {
    return Fail(error, kDataLoss, "header: a reserved byte is not 0");
  }
  return true;
}

// The checks of one record.
class LayerChecker {
 public:
  LayerChecker(const LayerRecord& record, uint32_t index, Error* error)
      : r_(record), index_(index), error_(error) {}

  // `input` is the features of the layer's input; `is_sequence`: whether it is
  // a sequence.
  bool Check(uint64_t input, bool is_sequence) const {
    return CheckKind() && CheckChoices() && CheckFunctions() && CheckFlags() &&
           CheckSizes(input) && CheckNumbers() && CheckOrder(is_sequence) &&
           CheckReserved();
  }
  // Sets the pointers to the arrays of a record whose fields are valid. `first`
  // is the first offset behind the records. The bytes of the arrays are taken
  // from `room`.
  bool SetArrays(const void* data, uint64_t first, uint64_t size,
                 uint64_t* room, Layer* layer) const {
    for (int d = 0; d < kMaxDirections; ++d) {
      for (int a = 0; a < kArrays; ++a) {
        if (!SetArray(data, first, size, d, a, room, layer)) return false;
      }
    }
    return true;
  }

 private:
  enum class Presence { kAbsent, kOptional, kRequired };

  bool is_recurrent() const { return r_.kind == kRecurrent; }
  bool is_lstm() const { return r_.cell == kLstmCell; }
  bool has_layer_norm() const {
    return r_.cell == kLayerNormLstmCell || r_.cell == kLayerNormGruCell;
  }
  bool projects() const { return r_.hidden_size < r_.units; }
  uint64_t gates() const {
    if (r_.cell == kSimpleRnnCell) return 1;
    return is_lstm() || r_.cell == kLayerNormLstmCell ? 4 : 3;
  }

  bool InRange(const char* field, uint64_t value, uint64_t low,
               uint64_t high) const {
    if (value >= low && value <= high) return true;
    if (low == high) {
      return Fail(error_, kDataLoss,
                  "layer %" PRIu32 ": %s is %" PRIu64 ", must be %" PRIu64,
                  index_, field, value, low);
    }
    return Fail(error_, kDataLoss,
                "layer %" PRIu32 ": %s is %" PRIu64 ", must be from %" PRIu64
                " to %" PRIu64,
                index_, field, value, low, high);
  }
  bool Is(const char* field, uint64_t value, uint64_t wanted) const {
    return InRange(field, value, wanted, wanted);
  }
  bool NumberFails(const char* field, double value, const char* wanted) const {
    return Fail(error_, kDataLoss, "layer %" PRIu32 ": %s is %g, must be %s",
                index_, field, value, wanted);
  }

  bool IsBound(const char* field, double value) const {
    return (value >= 0 && value <= FLT_MAX) ||
           NumberFails(field, value, "0 or a positive finite float");
  }

  bool CheckKind() const { return InRange("kind", r_.kind, 1, kMasking); }

  bool CheckChoices() const {
    if (!is_recurrent()) {
      return Is("cell", r_.cell, 0) && Is("directions", r_.directions, 0) &&
             Is("merge", r_.merge, 0);
    }
    return InRange("cell", r_.cell, 1, kSimpleRnnCell) &&
           InRange("directions", r_.directions, 1, kBoth) &&
           (r_.directions == kBoth ? InRange("merge", r_.merge, 1, kAverage)
                                   : Is("merge", r_.merge, 0));
  }

  bool CheckFunctions() const {
    if (r_.cell == kSimpleRnnCell) {
      return InRange("activation", r_.activation, kReluFunction,
                     kTanhFunction) &&
             Is("recurrent_activation", r_.recurrent_activation, 0);
    }
    if (has_layer_norm()) {
      return Is("activation", r_.activation, kTanhFunction) &&
             Is("recurrent_activation", r_.recurrent_activation,
                kSigmoidFunction);
    }
    const bool has_softmax = r_.kind == kDense || r_.kind == kActivation;
    const bool is_softmax = has_softmax && r_.activation == kSoftmax;
    return (is_softmax || InRange("activation", r_.activation, 0,
                                  r_.kind == kMasking ? 0 : kFunctions - 1)) &&
           InRange("recurrent_activation", r_.recurrent_activation, 0,
                   is_recurrent() ? kFunctions - 1 : 0);
  }

  bool CheckFlags() const {
    uint32_t allowed = 0;
    if (is_recurrent()) allowed = kReturnsSequence | kZeroOutputForMask;
    if (r_.cell == kLayerNormLstmCell) allowed |= kCarriesNormalizedState;
    if (r_.directions == kBackwards) allowed |= kInOrderOfComputation;
    if ((r_.flags & ~allowed) == 0) return true;
    return Fail(error_, kDataLoss,
                "layer %" PRIu32 ": flags is %" PRIu32
                ", may contain the bits of %" PRIu32 " only",
                index_, r_.flags, allowed);
  }

  bool CheckSizes(uint64_t input) const {
    if (!Is("input_size", r_.input_size, input)) return false;
    if (!InRange("units", r_.units, 1, kMaxSize)) return false;
    if (r_.kind == kActivation || r_.kind == kMasking) {
      if (!Is("units", r_.units, r_.input_size)) return false;
    }
    return InRange("hidden_size", r_.hidden_size, is_lstm() ? 1 : r_.units,
                   r_.units);
  }

  bool CheckNumbers() const {
    // The engine computes with float numbers.
    const double number = r_.number;
    if (is_lstm() && !IsBound("number", number)) return false;
    if (is_lstm() && projects()) {
      if (!IsBound("proj_clip", r_.proj_clip)) return false;
    } else if (r_.proj_clip != 0) {
      return NumberFails("proj_clip", r_.proj_clip, "0");
    }
    if (r_.kind == kMasking && !(std::fabs(number) <= FLT_MAX)) {
      return NumberFails("number", number, "a finite float");
    }
    if (!is_lstm() && r_.kind != kMasking && number != 0) {
      return NumberFails("number", number, "0");
    }
    if (!has_layer_norm()) {
      return r_.epsilon == 0 || NumberFails("epsilon", r_.epsilon, "0");
    }
    return (r_.epsilon >= FLT_MIN && r_.epsilon <= FLT_MAX) ||
           NumberFails("epsilon", r_.epsilon, "a positive finite float");
  }

  bool CheckOrder(bool is_sequence) const {
    if (is_sequence || r_.kind == kDense || r_.kind == kActivation) return true;
    return Fail(error_, kDataLoss,
                "layer %" PRIu32 ": kind is %" PRIu32
                ", must be 2 or 3 behind a layer that returns the last step",
                index_, r_.kind);
  }

  bool CheckReserved() const {
    if (r_.reserved == 0 &&
        AllZero(r_.reserved_bytes, sizeof(r_.reserved_bytes))) {
      return true;
    }
    return Fail(error_, kDataLoss,
                "layer %" PRIu32 ": a reserved byte is not 0", index_);
  }

  Presence PresenceOf(int direction, int array) const {
    const auto required_if = [](bool is_required) {
      return is_required ? Presence::kRequired : Presence::kAbsent;
    };
    const auto optional_if = [](bool is_optional) {
      return is_optional ? Presence::kOptional : Presence::kAbsent;
    };
    if (direction > 0 && r_.directions != kBoth) return Presence::kAbsent;
    const bool has_weights = is_recurrent() || r_.kind == kDense;
    switch (array) {
      case kKernel:
        return required_if(has_weights);
      case kRecurrentKernel:
        return required_if(is_recurrent());
      case kBias:
        return optional_if(has_weights);
      case kRecurrentBias:
        return optional_if(r_.cell == kResetAfterGruCell ||
                           r_.cell == kLayerNormGruCell);
      case kPeephole:
        return optional_if(is_lstm());
      case kProjection:
        return required_if(is_recurrent() && projects());
      case kInputGamma:
      case kRecurrentGamma:
        return required_if(has_layer_norm());
      default:  // kStateGamma, kStateBeta
        return required_if(r_.cell == kLayerNormLstmCell);
    }
  }

  // The number of elements.
  uint64_t SizeOf(int array) const {
    const uint64_t width = is_recurrent() ? gates() * r_.units : r_.units;
    switch (array) {
      case kKernel:
        return r_.input_size * width;
      case kRecurrentKernel:
        return r_.hidden_size * width;
      case kPeephole:
        return 3 * r_.units;
      case kProjection:
        return r_.units * r_.hidden_size;
      case kStateGamma:
      case kStateBeta:
        return r_.units;
      default:
        return width;
    }
  }

  bool ArrayFails(int direction, int array, const char* what) const {
    return Fail(error_, kDataLoss,
                "layer %" PRIu32
                ": offset of array %s of direction %d is "
                "%" PRIu64 ", %s",
                index_, kArrayNames[array], direction,
                r_.arrays[direction][array], what);
  }

  bool SetArray(const void* data, uint64_t first, uint64_t size, int direction,
                int array, uint64_t* room, Layer* layer) const {
    const uint64_t offset = r_.arrays[direction][array];
    const Presence presence = PresenceOf(direction, array);
    layer->arrays[direction][array] = nullptr;
    if (offset == 0) {
      return presence != Presence::kRequired ||
             ArrayFails(direction, array, "the array must be present");
    }
    if (presence == Presence::kAbsent) {
      return ArrayFails(direction, array, "must be 0 in this layer");
    }
    if (offset % kAlignment != 0) {
      return ArrayFails(direction, array, "must be a multiple of 64");
    }
    if (offset < first) {
      return ArrayFails(direction, array, "must lie behind the records");
    }
    const uint64_t bytes = SizeOf(array) * sizeof(float);
    if (offset > size || bytes > size - offset) {
      char text[100];
      std::snprintf(text, sizeof(text),
                    "its %" PRIu64 " bytes must end within the file's %" PRIu64,
                    bytes, size);
      return ArrayFails(direction, array, text);
    }
    if (bytes > *room) {
      return ArrayFails(direction, array,
                        "all arrays must not have more bytes than the file");
    }
    *room -= bytes;
    layer->arrays[direction][array] =
        reinterpret_cast<const float*>(static_cast<const char*>(data) + offset);
    return true;
  }

  const LayerRecord& r_;
  const uint32_t index_;
  Error* const error_;
};

Layer LayerOf(const LayerRecord& record) {
  Layer layer = {};
  layer.kind = static_cast<Kind>(record.kind);
  layer.cell = static_cast<Cell>(record.cell);
  layer.directions = static_cast<Directions>(record.directions);
  layer.merge = static_cast<Merge>(record.merge);
  layer.activation = record.activation;
  layer.recurrent_activation = record.recurrent_activation;
  layer.flags = record.flags;
  layer.input_size = static_cast<int64_t>(record.input_size);
  layer.units = static_cast<int64_t>(record.units);
  layer.hidden_size = static_cast<int64_t>(record.hidden_size);
  layer.number = record.number;
  layer.epsilon = record.epsilon;
  layer.proj_clip = record.proj_clip;
  return layer;
}

}  // namespace

bool ReadFile(const void* data, uint64_t size, std::vector<Layer>* layers,
              Error* error) {
  FileHeader header;
  if (size < sizeof(header)) {
    return Fail(error, kDataLoss,
                "the file has %" PRIu64 " bytes, must have at least %zu", size,
                sizeof(header));
  }
  std::memcpy(&header, data, sizeof(header));
  if (!CheckHeader(header, size, error)) return false;
  const uint64_t first =
      sizeof(header) + header.layer_count * sizeof(LayerRecord);
  // Arrays may overlap, but a small file must not need much memory.
  uint64_t room = size;
  uint64_t features = header.input_size;
  bool is_sequence = true;
  layers->clear();
  layers->reserve(header.layer_count);
  for (uint32_t k = 0; k < header.layer_count; ++k) {
    LayerRecord record;
    std::memcpy(
        &record,
        static_cast<const char*>(data) + sizeof(header) + k * sizeof(record),
        sizeof(record));
    const LayerChecker checker(record, k, error);
    if (!checker.Check(features, is_sequence)) return false;
    Layer layer = LayerOf(record);
    if (!checker.SetArrays(data, first, size, &room, &layer)) return false;
    features = static_cast<uint64_t>(layer.output_size());
    is_sequence = is_sequence && !layer.takes_last_step();
    layers->push_back(layer);
  }
  return true;
}

}  // namespace tf_lstm_ops::session
