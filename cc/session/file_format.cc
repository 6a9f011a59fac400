#include "session/file_format.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "session/field_checks.h"
#include "session/layers/layer_kinds.h"

namespace tf_lstm_ops::session {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the file's numbers are read in place");

constexpr uint8_t kMagic[8] = {0x89, 0x54, 0x4C, 0x4F, 0x53, 0x0D, 0x0A, 0x1A};
constexpr uint32_t kVersion = 2;
constexpr uint32_t kMaxLayersV1 = 1024, kMaxNodes = 4096;
constexpr uint32_t kMaxTableOperands = 65536;
constexpr uint32_t kStructures = 3;

bool CheckRange(const char* field, uint64_t value, uint64_t low, uint64_t high,
                Error* error) {
  FieldText wrong;
  return InRange(field, value, low, high, &wrong) ||
         Fail(error, kDataLoss, "header: %s", wrong.text);
}

bool CheckFileSize(uint64_t field, uint64_t size, Error* error) {
  if (field != size) {
    return Fail(error, kDataLoss,
                "header: file_size is %" PRIu64 ", the file has %" PRIu64
                " bytes",
                field, size);
  }
  return size % kAlignment == 0 ||
         Fail(error, kDataLoss,
              "header: file_size is %" PRIu64 ", must be a multiple of 64",
              size);
}

bool CheckRoom(uint64_t size, uint64_t tables, uint32_t layers, Error* error) {
  return size >= tables ||
         Fail(error, kDataLoss,
              "header: file_size is %" PRIu64 ", must be at least %" PRIu64
              " for %" PRIu32 " layers",
              size, tables, layers);
}

// Reads the tables of a file from its start on.
class TableReader {
 public:
  TableReader(const void* data, uint64_t size) : data_(data), size_(size) {}

  // Where the next table begins.
  uint64_t offset() const { return offset_; }
  // Sets `records` to the next table, of `count` records. False where the file
  // ends before it, or where a byte behind it is not 0.
  template <class T>
  bool Read(uint64_t count, std::vector<T>* records) {
    const uint64_t bytes = count * sizeof(T);
    const uint64_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (padded > size_ - offset_) return false;
    const char* from = static_cast<const char*>(data_) + offset_;
    records->resize(count);
    if (count > 0) std::memcpy(records->data(), from, bytes);
    offset_ += padded;
    return AllZero(from + bytes, padded - bytes);
  }

 private:
  const void* const data_;
  const uint64_t size_;
  uint64_t offset_ = sizeof(HeaderV2);
};

// The graph of a chain: values 0 and 1 are the input and its mask.
void SetChain(uint64_t input_size, const std::vector<LayerRecord>& layers,
              FileTables* tables) {
  InputRecord input = {};
  input.rank = 3;
  input.dims[0] = kUnknown;
  input.dims[1] = static_cast<int64_t>(input_size);
  tables->inputs.push_back(input);
  uint32_t x = 0, mask = 1, next = 2;
  for (const LayerRecord& layer : layers) {
    NodeRecord node = {};
    node.layer = layer;
    node.batch_axes = 1;
    node.first_operand = static_cast<uint32_t>(tables->operands.size());
    tables->operands.push_back(x);
    if (layer.kind == kRecurrentKind) tables->operands.push_back(mask);
    node.operand_count =
        static_cast<uint32_t>(tables->operands.size()) - node.first_operand;
    tables->nodes.push_back(node);
    x = next++;
    if (layer.kind == kMaskingKind) mask = next++;
  }
  OutputRecord output = {};
  output.value = x;
  tables->outputs.push_back(output);
}

bool ReadVersion1(const void* data, uint64_t size, FileTables* tables,
                  FileView* view, Error* error) {
  HeaderV1 header;
  std::memcpy(&header, data, sizeof(header));
  if (!CheckRange("layer_count", header.layer_count, 1, kMaxLayersV1, error) ||
      !CheckFileSize(header.file_size, size, error)) {
    return false;
  }
  view->first = sizeof(header) + header.layer_count * sizeof(LayerRecord);
  if (!CheckRoom(size, view->first, header.layer_count, error) ||
      !CheckRange("input_size", header.input_size, 1, kMaxSize, error)) {
    return false;
  }
  if (!AllZero(header.reserved, sizeof(header.reserved))) {
    return Fail(error, kDataLoss, "header: a reserved byte is not 0");
  }
  std::vector<LayerRecord> layers;
  TableReader(data, size).Read(header.layer_count, &layers);
  for (uint32_t k = 0; k < header.layer_count; ++k) {
    const uint32_t kind = layers[k].kind;
    if (kind >= 1 && kind <= kMaskingKind) continue;
    return FailInLayer(error, kDataLoss, k,
                       ": kind is %" PRIu32 ", must be from 1 to %" PRIu32,
                       kind, kMaskingKind);
  }
  SetChain(header.input_size, layers, tables);
  return true;
}

bool IsName(const char (&name)[64]) {
  const auto* end = static_cast<const char*>(std::memchr(name, 0, 64));
  return end && AllZero(end, name + sizeof(name) - end);
}

bool CheckInput(const InputRecord& input, size_t index, Error* error) {
  const auto fails = [&](const char* what) {
    return Fail(error, kDataLoss, "input %zu: %s", index, what);
  };
  if (input.type > 1) return fails("type must be 0 or 1");
  if (input.rank < 2 || input.rank > kMaxDims + 1) {
    return fails("rank must be from 2 to 6");
  }
  for (uint32_t k = 0; k < kMaxDims; ++k) {
    const int64_t dim = input.dims[k];
    if (k + 1 >= input.rank
            ? dim == 0
            : dim == kUnknown || (dim >= 1 && dim <= kMaxSize)) {
      continue;
    }
    return fails(k + 1 >= input.rank
                     ? "a dimension that it does not have is not 0"
                     : "a dimension must be -1 or from 1 to 2^24");
  }
  if (input.batch < 0 || input.batch > kMaxSize) {
    return fails("batch must be from 0 to 2^24");
  }
  if (input.whole > 1) return fails("whole must be 0 or 1");
  if (!AllZero(input.reserved, sizeof(input.reserved))) {
    return fails("a reserved byte is not 0");
  }
  return IsName(input.name) || fails("name must end with 0, and zeros follow");
}

bool CheckOutput(const OutputRecord& output, size_t index, Error* error) {
  if (!AllZero(output.reserved, sizeof(output.reserved))) {
    return Fail(error, kDataLoss, "output %zu: a reserved byte is not 0",
                index);
  }
  return IsName(output.name) ||
         Fail(error, kDataLoss,
              "output %zu: name must end with 0, and zeros follow", index);
}

bool ReadVersion2(const void* data, uint64_t size, FileTables* tables,
                  FileView* view, Error* error) {
  HeaderV2 header;
  std::memcpy(&header, data, sizeof(header));
  if (!CheckRange("layer_count", header.layer_count, 1, kMaxNodes, error) ||
      !CheckFileSize(header.file_size, size, error) ||
      !CheckRange("input_count", header.input_count, 1, kMaxArguments, error) ||
      !CheckRange("output_count", header.output_count, 1, kMaxArguments,
                  error) ||
      !CheckRange("operand_count", header.operand_count, 1, kMaxTableOperands,
                  error) ||
      !CheckRange("input_structure", header.input_structure, 0, kStructures - 1,
                  error) ||
      !CheckRange("output_structure", header.output_structure, 0,
                  kStructures - 1, error)) {
    return false;
  }
  if (!AllZero(header.reserved, sizeof(header.reserved))) {
    return Fail(error, kDataLoss, "header: a reserved byte is not 0");
  }
  tables->input_structure = header.input_structure;
  tables->output_structure = header.output_structure;
  TableReader reader(data, size);
  if (!reader.Read(header.input_count, &tables->inputs) ||
      !reader.Read(header.output_count, &tables->outputs) ||
      !reader.Read(header.operand_count, &tables->operands) ||
      !reader.Read(header.layer_count, &tables->nodes)) {
    return Fail(error, kDataLoss,
                "header: a table does not fit in the file, or a byte behind "
                "the operands is not 0");
  }
  view->first = reader.offset();
  for (size_t k = 0; k < tables->inputs.size(); ++k) {
    if (!CheckInput(tables->inputs[k], k, error)) return false;
  }
  for (size_t k = 0; k < tables->outputs.size(); ++k) {
    if (!CheckOutput(tables->outputs[k], k, error)) return false;
  }
  return true;
}

}  // namespace

bool ReadTables(const void* data, uint64_t size, FileTables* tables,
                FileView* view, Error* error) {
  HeaderV1 header;
  const uint64_t compared = std::min<uint64_t>(size, sizeof(kMagic));
  const bool begins_so =
      compared == 0 || std::memcmp(data, kMagic, compared) == 0;
  if (size < sizeof(header)) {
    Fail(error, kDataLoss,
         "the file has %" PRIu64 " bytes, must have at least %zu", size,
         sizeof(header));
    if (!begins_so) error->reason = kNotASessionFile;
    return false;
  }
  std::memcpy(&header, data, sizeof(header));
  if (!begins_so) {
    Fail(error, kDataLoss, "header: magic is not that of a session's file");
    error->reason = kNotASessionFile;
    return false;
  }
  if (header.version == 0) {
    return Fail(error, kDataLoss,
                "header: version is 0, must be from 1 to %" PRIu32, kVersion);
  }
  if (header.version > kVersion) {
    return Fail(error, kUnimplemented,
                "header: version is %" PRIu32
                ", this library reads versions up to %" PRIu32,
                header.version, kVersion);
  }
  *view = {header.version, data, size, 0, size};
  return (header.version == 1 ? ReadVersion1 : ReadVersion2)(data, size, tables,
                                                             view, error);
}

}  // namespace tf_lstm_ops::session
