// The file of a session: its records, and the reader that checks every field.
// docs/reference/session_file.md describes the format.
#ifndef TF_LSTM_OPS_SESSION_FILE_FORMAT_H_
#define TF_LSTM_OPS_SESSION_FILE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "session/error.h"

namespace tf_lstm_ops::session {

struct FileHeader {
  uint8_t magic[8];
  uint32_t version;
  uint32_t layer_count;
  uint64_t file_size;
  uint64_t input_size;
  uint8_t reserved[32];
};
static_assert(sizeof(FileHeader) == 64);
static_assert(offsetof(FileHeader, version) == 8);
static_assert(offsetof(FileHeader, file_size) == 16);
static_assert(offsetof(FileHeader, reserved) == 32);

constexpr int kArrays = 10;
constexpr int kMaxDirections = 2;

struct LayerRecord {
  uint32_t kind;
  uint32_t cell;
  uint32_t directions;
  uint32_t merge;
  uint32_t activation;
  uint32_t recurrent_activation;
  uint32_t flags;
  uint32_t reserved;
  uint64_t input_size;
  uint64_t units;
  uint64_t hidden_size;
  double number;
  double epsilon;
  uint64_t arrays[kMaxDirections][kArrays];
  double proj_clip;
  uint8_t reserved_bytes[16];
};
static_assert(sizeof(LayerRecord) == 256);
static_assert(offsetof(LayerRecord, flags) == 24);
static_assert(offsetof(LayerRecord, input_size) == 32);
static_assert(offsetof(LayerRecord, number) == 56);
static_assert(offsetof(LayerRecord, arrays) == 72);
static_assert(offsetof(LayerRecord, proj_clip) == 232);
static_assert(offsetof(LayerRecord, reserved_bytes) == 240);

enum Kind : uint32_t {
  kRecurrent = 1,
  kDense = 2,
  kActivation = 3,
  kMasking = 4,
};
enum Cell : uint32_t {
  kNoCell = 0,
  kLstmCell = 1,
  kResetAfterGruCell = 2,
  kResetBeforeGruCell = 3,
  kLayerNormLstmCell = 4,
  kLayerNormGruCell = 5,
  kSimpleRnnCell = 6,
};
enum Directions : uint32_t { kForwards = 1, kBackwards = 2, kBoth = 3 };
enum Merge : uint32_t {
  kNoMerge = 0,
  kConcatenate = 1,
  kSum = 2,
  kProduct = 3,
  kAverage = 4,
};
enum Flags : uint32_t {
  kReturnsSequence = 1,
  kZeroOutputForMask = 2,
  kCarriesNormalizedState = 4,
  kInOrderOfComputation = 8,
};
// The functions; those below kFunctions are the values of core's Activation.
constexpr uint32_t kReluFunction = 1;
constexpr uint32_t kTanhFunction = 2;
constexpr uint32_t kSigmoidFunction = 3;
constexpr uint32_t kFunctions = 11;
constexpr uint32_t kSoftmax = 16;

enum Array {
  kKernel,
  kRecurrentKernel,
  kBias,
  kRecurrentBias,
  kPeephole,
  kProjection,
  kInputGamma,
  kRecurrentGamma,
  kStateGamma,
  kStateBeta,
};

// A checked layer.
struct Layer {
  Kind kind;
  Cell cell;
  Directions directions;
  Merge merge;
  uint32_t activation;
  uint32_t recurrent_activation;
  uint32_t flags;
  int64_t input_size;
  int64_t units;
  int64_t hidden_size;
  double number;
  double epsilon;
  double proj_clip;
  // Null: absent. Arrays lie in the file.
  const float* arrays[kMaxDirections][kArrays];

  bool Has(Flags flag) const { return (flags & flag) != 0; }
  bool is_lstm() const {
    return cell == kLstmCell || cell == kLayerNormLstmCell;
  }
  int direction_count() const { return directions == kBoth ? 2 : 1; }
  // Features of the output.
  int64_t output_size() const {
    return merge == kConcatenate ? 2 * hidden_size : hidden_size;
  }
  // Whether the layer turns a sequence into its last step.
  bool takes_last_step() const {
    return kind == kRecurrent && !Has(kReturnsSequence);
  }
};

// Sets `layers` from the `size` bytes of a file, aligned to 64 bytes. Errors:
// DATA_LOSS, UNIMPLEMENTED. Throws std::bad_alloc.
bool ReadFile(const void* data, uint64_t size, std::vector<Layer>* layers,
              Error* error);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_FILE_FORMAT_H_
