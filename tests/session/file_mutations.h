// Random changes of the bytes of a session's file.
#ifndef TF_LSTM_OPS_TESTS_SESSION_FILE_MUTATIONS_H_
#define TF_LSTM_OPS_TESTS_SESSION_FILE_MUTATIONS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "file_layout.h"

// SplitMix64: any seed gives independent numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // From 0 to count - 1; 0 of no numbers.
  uint64_t Below(uint64_t count) { return count == 0 ? 0 : Next() % count; }
  bool OneIn(uint64_t count) { return Below(count) == 0; }
  template <class T, size_t n>
  T OneOf(const T (&values)[n]) {
    return values[Below(n)];
  }

 private:
  uint64_t state_;
};

class Mutator {
 public:
  Mutator(const std::vector<File>& files, uint64_t seed)
      : files_(files), random_(seed) {}

  // A copy of one of the files with one to four changes.
  File Mutate() {
    file_ = files_[random_.Below(files_.size())];
    const uint64_t changes = 1 + random_.Below(4);
    for (uint64_t k = 0; k < changes; ++k) Change();
    // Otherwise the check of this field would hide what follows.
    if (!random_.OneIn(8)) Store<uint64_t>(&file_, kFileSizeAt, file_.size());
    return file_;
  }
  Random& random() { return random_; }

 private:
  void Change() {
    const Layout layout(file_);
    if (layout.is_graph && random_.OneIn(2)) return ChangeGraph();
    switch (random_.Below(12)) {
      case 0:
        return FlipBits(file_.size());
      case 1:
        return FlipBits(layout.records + layout.record_bytes);
      case 2:
        return Store(&file_, 4 * random_.Below(RecordsEnd() / 4), Boundary32());
      case 3:
        return Store(&file_, 8 * random_.Below(RecordsEnd() / 8), Boundary64());
      case 4:
        return Store<uint32_t>(&file_, Record() + 4 * random_.Below(kChoices),
                               random_.Below(layout.is_graph ? 37 : 18));
      case 5:
        return ChangeSizes();
      case 6:
        return Store(&file_,
                     Record() + kFirstNumberAt +
                         sizeof(double) * random_.Below(kNumbers),
                     Number());
      case 7:
        return Store(&file_,
                     Record() + kFirstArrayAt +
                         sizeof(uint64_t) * random_.Below(kOffsets),
                     Offset());
      case 8:
        return Resize();
      case 9:
        return Splice();
      case 10:
        return Store<uint32_t>(&file_, kLayerCountAt, random_.Below(6));
      default:
        return ChangeWeights();
    }
  }

  size_t RecordsEnd() const { return Layout(file_).end(); }
  // The start of a record.
  size_t Record() {
    const Layout layout(file_);
    return layout.records + layout.record_bytes * random_.Below(layout.layers);
  }

  // What only version 2 has.
  void ChangeGraph() {
    const Layout layout(file_);
    const size_t record = Record();
    switch (random_.Below(10)) {
      case 0:
        return Store<uint32_t>(
            &file_, kInputCountAt + 4 * random_.Below(kHeaderNumbers),
            random_.Below(6));
      case 1:
      case 2:
        return ChangeInput(layout);
      case 3:
        return Store(
            &file_,
            layout.outputs_at + kArgumentBytes * random_.Below(layout.outputs),
            ValueNumber());
      case 4:
      case 5:
        return Store(&file_,
                     layout.operands_at + 4 * random_.Below(layout.operands),
                     ValueNumber());
      case 6:
        return Store<uint32_t>(
            &file_,
            record + kFirstOperandAt + 4 * random_.Below(kOperandNumbers),
            random_.OneIn(4) ? Boundary32() : random_.Below(5));
      case 7:
        return Store(&file_,
                     record + kNodeNumbersAt +
                         sizeof(double) * random_.Below(kNodeNumbers),
                     Number());
      default:
        return Store(&file_,
                     record + kIntsAt + sizeof(int64_t) * random_.Below(kInts),
                     Int());
    }
  }

  void ChangeInput(const Layout& layout) {
    const size_t record =
        kHeaderBytes + kArgumentBytes * random_.Below(layout.inputs);
    switch (random_.Below(4)) {
      case 0:  // type or rank
        return Store<uint32_t>(&file_, record + 4 * random_.Below(2),
                               random_.Below(8));
      case 1:
        return Store<uint8_t>(&file_, record + kNameAt + random_.Below(64),
                              random_.Below(256));
      default:
        return Store(&file_,
                     record + kDimsAt + sizeof(int64_t) * random_.Below(kDims),
                     Int());
    }
  }

  // Of an operand or output: mostly one that exists.
  uint32_t ValueNumber() {
    return random_.OneIn(6) ? Boundary32() : random_.Below(ValuesOf(file_) + 1);
  }
  // Of a size, a number of steps or an axis.
  int64_t Int() {
    if (random_.OneIn(4)) return static_cast<int64_t>(Boundary64());
    return static_cast<int64_t>(random_.Below(12)) - 3;
  }

  void FlipBits(size_t end) {
    end = std::min(end, file_.size());
    for (uint64_t k = random_.Below(8); end > 0; --k) {
      file_[random_.Below(end)] ^= uint8_t{1} << random_.Below(8);
      if (k == 0) return;
    }
  }

  uint32_t Boundary32() {
    const uint32_t values[] = {0,  1,    2,    3,          4,          5,
                               16, 1024, 1025, 0x7FFFFFFF, 0x80000000, ~0U};
    return random_.OneOf(values);
  }
  uint64_t Boundary64() {
    const uint64_t one = 1;
    const uint64_t values[] = {0,           1,
                               64,          (one << 24) - 1,
                               one << 24,   (one << 24) + 1,
                               one << 31,   one << 32,
                               one << 58,  // times 64: 2^64
                               one << 62,   (one << 63) - 1,
                               one << 63,   ~uint64_t{63},
                               ~uint64_t{0}};
    return random_.OneIn(3) ? Offset() : random_.OneOf(values);
  }
  double Number() {
    const double values[] = {0.0,   -0.0, 1.0,    -1.0,   1e-38,   1e-46,
                             1e308, 0.25, 3.4e38, 3.5e38, 4.9e-324};
    switch (random_.Below(4)) {
      case 0: {
        const uint64_t bits = random_.Next() | 0x7FF0000000000000;  // inf, NaN
        double value;
        std::memcpy(&value, &bits, sizeof(value));
        return value;
      }
      default:
        return random_.OneOf(values);
    }
  }
  // An offset of an array, mostly near the end of the file or of the records.
  uint64_t Offset() {
    const uint64_t lines = random_.Below(6);
    switch (random_.Below(4)) {
      case 0:
        return file_.size() - 64 * lines;
      case 1:
        return RecordsEnd() - 64 + 64 * lines;
      case 2:
        return random_.Below(file_.size() + 128);
      default:
        return 64 * random_.Below(file_.size() / 64 + 2);
    }
  }

  // Sets sizes of a record, and often that of the neighbour in a chain, which
  // must agree.
  void ChangeSizes() {
    const Layout layout(file_);
    const size_t record = Record(), sizes = record + kFirstSizeAt;
    const uint64_t size = random_.OneIn(4) ? Boundary64() : random_.Below(40);
    const uint64_t field = random_.Below(kSizes);
    Store(&file_, sizes + sizeof(size) * field, size);
    if (random_.OneIn(3)) return;
    if (field == 0) {
      const bool is_first = record == layout.records;
      const size_t before = sizes - layout.record_bytes;
      if (!is_first || !layout.is_graph) {
        Store(&file_, is_first ? kInputSizeAt : before + 8, size);
      }
      if (!is_first) Store(&file_, before + 16, size);
    } else {
      Store(&file_, sizes + 8, size);
      Store(&file_, sizes + 16, size);
      Store(&file_, sizes + layout.record_bytes, size);
    }
    if (!random_.OneIn(3)) return;
    // Without arrays the sizes may be large: an activation.
    File layer(kLayerBytes);
    Store<uint32_t>(&layer, 0, 3);
    for (uint64_t k = 0; k < kSizes; ++k) {
      Store(&layer, kFirstSizeAt + sizeof(size) * k, size);
    }
    if (record + kLayerBytes > file_.size()) return;
    std::copy(layer.begin(), layer.end(), file_.begin() + record);
  }

  void Resize() {
    size_t size = random_.OneIn(2) ? random_.Below(file_.size() + 1)
                                   : file_.size() + random_.Below(300);
    if (!random_.OneIn(3)) size = size / 64 * 64;
    file_.resize(size, random_.OneIn(2) ? 0 : 0xFF);
    if (file_.empty()) file_.resize(64);
  }

  // Copies a record or another range of any file.
  void Splice() {
    const File& other = files_[random_.Below(files_.size())];
    size_t from = 0, to = 0, count = 0;
    if (random_.OneIn(2)) {
      const Layout layout(other);
      from =
          layout.records + layout.record_bytes * random_.Below(layout.layers);
      to = Record();
      // Often without the operands and the numbers of a node.
      count = random_.OneIn(2) ? kLayerBytes : layout.record_bytes;
    } else {
      from = to = 4 * random_.Below(other.size() / 4);
      count = other.size();
    }
    if (from >= other.size() || to >= file_.size()) return;
    count = std::min({count, other.size() - from, file_.size() - to});
    std::copy_n(other.begin() + from, count, file_.begin() + to);
  }

  void ChangeWeights() {
    const float values[] = {1e38F, -1e38F, 1e-40F, 0.0F, -0.0F, 30.0F};
    const size_t begin = RecordsEnd();
    if (begin >= file_.size()) return;
    for (int k = 0; k < 8; ++k) {
      const size_t at = begin + 4 * random_.Below((file_.size() - begin) / 4);
      if (random_.OneIn(3)) {
        Store(&file_, at, uint32_t(random_.Next() | 0x7F800000));  // inf, NaN
      } else {
        Store(&file_, at, random_.OneOf(values));
      }
    }
  }

  const std::vector<File>& files_;
  Random random_;
  File file_;
};

#endif  // TF_LSTM_OPS_TESTS_SESSION_FILE_MUTATIONS_H_
