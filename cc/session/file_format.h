// The file of a session: its records, and the reader that checks every field.
// docs/reference/session_file.md describes the format.
#ifndef TF_LSTM_OPS_SESSION_FILE_FORMAT_H_
#define TF_LSTM_OPS_SESSION_FILE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "session/error.h"

namespace tf_lstm_ops::session {

constexpr int kArrays = 10;
constexpr int kMaxDirections = 2;
// With it no product of two sizes overflows.
constexpr int64_t kMaxSize = int64_t{1} << 24;
// Of arrays in the file, and of its first byte in memory.
constexpr uint64_t kAlignment = 64;
// Axes behind the batch.
constexpr int kMaxDims = 5;
// Inputs, and outputs.
constexpr int kMaxArguments = 64;
// Of a node.
constexpr int kMaxOperands = 64;
constexpr int kMaxBatchAxes = 4;
constexpr uint32_t kAbsent = ~uint32_t{0};
constexpr int kInts = 8;
constexpr int kNumbers = 4;

struct HeaderV1 {
  uint8_t magic[8];
  uint32_t version;
  uint32_t layer_count;
  uint64_t file_size;
  uint64_t input_size;
  uint8_t reserved[32];
};
static_assert(sizeof(HeaderV1) == 64);
static_assert(offsetof(HeaderV1, reserved) == 32);

struct HeaderV2 {
  uint8_t magic[8];
  uint32_t version;
  uint32_t layer_count;
  uint64_t file_size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t operand_count;
  uint32_t input_structure;
  uint32_t output_structure;
  uint8_t reserved[20];
};
static_assert(sizeof(HeaderV2) == 64);
static_assert(offsetof(HeaderV2, reserved) == 44);

struct InputRecord {
  uint32_t type;
  uint32_t rank;
  int64_t dims[kMaxDims];
  int64_t batch;   // 0: any
  uint32_t whole;  // 1: a call has all steps, so there is no stream
  uint8_t reserved[4];
  char name[64];
};
static_assert(sizeof(InputRecord) == 128);
static_assert(offsetof(InputRecord, batch) == 48);
static_assert(offsetof(InputRecord, whole) == 56);
static_assert(offsetof(InputRecord, name) == 64);

struct OutputRecord {
  uint32_t value;
  uint8_t reserved[60];
  char name[64];
};
static_assert(sizeof(OutputRecord) == 128);

// The record of version 1, the first part of a node's record.
struct LayerRecord {
  uint32_t kind;
  uint32_t cell;
  uint32_t directions;
  uint32_t merge;
  uint32_t activation;
  uint32_t recurrent_activation;
  uint32_t flags;
  uint32_t weights;  // WeightType, reserved in version 1
  uint64_t input_size;
  uint64_t units;
  uint64_t hidden_size;
  double number;
  double epsilon;
  uint64_t arrays[kMaxDirections][kArrays];
  double proj_clip;
  uint64_t initial[2];  // reserved in version 1
};
static_assert(sizeof(LayerRecord) == 256);
static_assert(offsetof(LayerRecord, flags) == 24);
static_assert(offsetof(LayerRecord, weights) == 28);
static_assert(offsetof(LayerRecord, input_size) == 32);
static_assert(offsetof(LayerRecord, number) == 56);
static_assert(offsetof(LayerRecord, arrays) == 72);
static_assert(offsetof(LayerRecord, proj_clip) == 232);
static_assert(offsetof(LayerRecord, initial) == 240);

struct NodeRecord {
  LayerRecord layer;
  uint32_t first_operand;
  uint32_t operand_count;
  uint32_t batch_axes;
  uint32_t reserved;
  int64_t ints[kInts];
  double numbers[kNumbers];
  uint8_t reserved_bytes[16];
};
static_assert(sizeof(NodeRecord) == 384);
static_assert(offsetof(NodeRecord, ints) == 272);
static_assert(offsetof(NodeRecord, numbers) == 336);

// The index of an array in a record.
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
  // Of cells without layer normalisation.
  kFunctions = kInputGamma,
};

// Bits of LayerRecord::flags.
enum Flags : uint32_t {
  kReturnsSequence = 1,
  kZeroOutputForMask = 2,
  kCarriesNormalizedState = 4,
  kInOrderOfComputation = 8,
  kReturnsState = 16,
  kReturnsMask = 32,
};

// The type of the matrices of a layer: those of NodeReader::Matrix and Table.
enum WeightType : uint32_t {
  kFloat32 = 0,
  kBFloat16 = 1,  // products are of float32
  kInt8 = 2,
  kBFloat16Products = 3,  // what is multiplied may be rounded, too
};

// The tables of a file of either version. A file of version 1 has the graph of
// its chain.
struct FileTables {
  std::vector<InputRecord> inputs;
  std::vector<OutputRecord> outputs;
  std::vector<uint32_t> operands;
  std::vector<NodeRecord> nodes;
  uint32_t input_structure = 0, output_structure = 0;
};

// Where arrays may lie in a file.
struct FileView {
  uint32_t version;
  const void* data;
  uint64_t size;
  uint64_t first;  // offset behind the tables
  // Bytes that arrays may have still. Arrays may overlap, but a small file must
  // not need much memory.
  mutable uint64_t room;
};

// Reads the tables of the `size` bytes of a file, aligned to 64 bytes. It
// checks the header and the records of inputs and outputs, but not the nodes.
// Errors: DATA_LOSS, UNIMPLEMENTED. Throws std::bad_alloc.
bool ReadTables(const void* data, uint64_t size, FileTables* tables,
                FileView* view, Error* error);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_FILE_FORMAT_H_
