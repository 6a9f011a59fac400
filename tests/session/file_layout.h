// The places of the tables in the bytes of a session's file.
#ifndef TF_LSTM_OPS_TESTS_SESSION_FILE_LAYOUT_H_
#define TF_LSTM_OPS_TESTS_SESSION_FILE_LAYOUT_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

using File = std::vector<uint8_t>;

inline uint32_t Load32(const File& file, size_t at) {
  uint32_t value = 0;
  if (at + sizeof(value) <= file.size()) {
    std::memcpy(&value, &file[at], sizeof(value));
  }
  return value;
}

template <class T>
void Store(File* file, size_t at, T value) {
  if (at + sizeof(value) > file->size()) return;
  std::memcpy(file->data() + at, &value, sizeof(value));
}

// Places in the file, by docs/reference/session_file.md.
constexpr size_t kHeaderBytes = 64, kLayerBytes = 256, kNodeBytes = 384;
constexpr size_t kVersionAt = 8, kLayerCountAt = 12, kFileSizeAt = 16;
// In the header of version 1, and of version 2.
constexpr size_t kInputSizeAt = 24;
constexpr size_t kInputCountAt = 24, kOutputCountAt = 28, kOperandCountAt = 32;
constexpr size_t kHeaderNumbers = 5;  // u32, from kInputCountAt on
constexpr size_t kArgumentBytes = 128, kDimsAt = 8, kNameAt = 64, kDims = 5;
// In a record of a layer or node.
constexpr size_t kFlagsAt = 24;
constexpr size_t kFirstSizeAt = 32, kFirstNumberAt = 56, kFirstArrayAt = 72;
constexpr size_t kChoices = 8;  // the u32 at the start of a record
constexpr size_t kSizes = 3, kNumbers = 2, kOffsets = 20;
constexpr size_t kFirstOperandAt = 256, kOperandNumbers = 3;
constexpr size_t kIntsAt = 272, kInts = 8, kNodeNumbersAt = 336,
                 kNodeNumbers = 4;

// Where the tables are. The counts may be those of a wrong file: they are
// bounded.
struct Layout {
  explicit Layout(const File& file)
      : is_graph(Load32(file, kVersionAt) == 2),
        layers(Count(file, kLayerCountAt)) {
    if (!is_graph) return;
    inputs = Count(file, kInputCountAt);
    outputs = Count(file, kOutputCountAt);
    operands = Count(file, kOperandCountAt);
    outputs_at = kHeaderBytes + kArgumentBytes * inputs;
    operands_at = outputs_at + kArgumentBytes * outputs;
    records = operands_at + (4 * operands + 63) / 64 * 64;
    record_bytes = kNodeBytes;
  }
  size_t end() const { return records + layers * record_bytes; }

  bool is_graph;
  size_t layers, inputs = 1, outputs = 1, operands = 0;
  size_t outputs_at = 0, operands_at = 0;
  size_t records = kHeaderBytes, record_bytes = kLayerBytes;

 private:
  static size_t Count(const File& file, size_t at) {
    return std::min<size_t>(std::max(Load32(file, at), 1U), 1024);
  }
};

// The number of values that the node at `record` makes.
inline size_t OutputsOf(const File& file, size_t record) {
  constexpr uint32_t kRecurrent = 1, kMasking = 4, kEmbedding = 5;
  const uint32_t kind = Load32(file, record), cell = Load32(file, record + 4);
  const uint32_t directions = Load32(file, record + 8);
  const uint32_t flags = Load32(file, record + kFlagsAt);
  if (kind == kRecurrent && (flags & 16) != 0) {
    return 1 + (cell == 1 || cell == 4 ? 2 : 1) * (directions == 3 ? 2 : 1);
  }
  return kind == kMasking || (kind == kEmbedding && (flags & 32) != 0) ? 2 : 1;
}

// The number of values of a file of version 2.
inline size_t ValuesOf(const File& file) {
  const Layout layout(file);
  size_t values = 2 * layout.inputs;
  for (size_t n = 0; n < layout.layers; ++n) {
    values += OutputsOf(file, layout.records + n * layout.record_bytes);
  }
  return values;
}

#endif  // TF_LSTM_OPS_TESTS_SESSION_FILE_LAYOUT_H_
