#include "core/reserve.h"

#include <cstring>

#include "core/dropout_rule.h"
#include "core/float16.h"

namespace tf_lstm_ops {
namespace {

constexpr uint32_t kMagic = 0x4d54534c;  // "LSTM"

uint64_t Fingerprint(const MultiLayerRnn& rnn, float dropout,
                     int element_type) {
  uint64_t hash = 0;
  const auto add = [&hash](int64_t value) {
    hash = SplitMix64(hash, static_cast<uint64_t>(value));
  };
  const RnnModel& m = rnn.model;
  for (const int64_t value :
       {static_cast<int64_t>(m.cell), m.layers, m.directions, m.input_size,
        m.cell_size, m.hidden_size, static_cast<int64_t>(m.skip_input),
        static_cast<int64_t>(rnn.time_major), rnn.time, rnn.batch,
        static_cast<int64_t>(FloatBits(dropout)), int64_t{element_type}}) {
    add(value);
  }
  for (const int64_t length : rnn.lengths) add(length);
  return hash;
}

uint64_t Checksum(ReserveHeader header) {
  header.checksum = 0;
  uint64_t words[sizeof header / sizeof(uint64_t)], hash = 0;
  std::memcpy(words, &header, sizeof header);
  for (const uint64_t word : words) hash = SplitMix64(hash, word);
  return hash;
}

void Write(ReserveHeader header, uint64_t dropout_key, void* reserve) {
  header.dropout_key = dropout_key;
  header.checksum = Checksum(header);
  std::memcpy(reserve, &header, sizeof header);
}

template <class... Parts>
Status Refuse(const Parts&... parts) {
  return InvalidArgument(
      "reserve_space ", parts...,
      "; it must come unchanged from a forward call of the same op with "
      "is_training=True and the same attributes and inputs");
}

}  // namespace

Reserve::Reserve(const MultiLayerRnn& rnn, float dropout, int element_type,
                 int element_size)
    : header_(), layout_(rnn.model, rnn.valid_steps, rnn.model.layers - 1) {
  header_.magic = kMagic;
  header_.element_size = static_cast<uint32_t>(element_size);
  header_.fingerprint = Fingerprint(rnn, dropout, element_type);
  header_.size = body() + layout_.size();
  header_.time = static_cast<uint32_t>(rnn.time);
  header_.batch = static_cast<uint32_t>(rnn.batch);
  header_.width = rnn.model.output_size();
  header_.inner_layers = static_cast<uint32_t>(rnn.model.layers - 1);
  header_.dropout = dropout;
}

int64_t Reserve::body() const {
  return static_cast<int64_t>(sizeof(ReserveHeader)) / header_.element_size;
}

void Reserve::WriteHeader(uint64_t dropout_key, void* reserve) const {
  Write(header_, dropout_key, reserve);
}

void Reserve::WriteForeignHeader(uint64_t dropout_key, int64_t size,
                                 void* reserve) const {
  ReserveHeader header = header_;
  header.fingerprint = ~header.fingerprint;
  header.size = size;
  Write(header, dropout_key, reserve);
}

Status Reserve::Check(const void* reserve, const Shape& shape,
                      uint64_t* dropout_key) const {
  ReserveHeader header;
  TF_LSTM_OPS_RETURN_IF_ERROR(ReadHeader(
      reserve, shape, static_cast<int>(header_.element_size), &header));
  if (header.fingerprint != header_.fingerprint) {
    return Refuse("comes from a call with other shapes, attributes or lengths");
  }
  if (header.size != size()) {
    return Refuse("must have ", size(), " elements but has ", header.size);
  }
  // The fingerprint covers these fields, but anyone can compute a fingerprint.
  if (header.time != header_.time || header.batch != header_.batch ||
      header.width != header_.width ||
      header.inner_layers != header_.inner_layers ||
      FloatBits(header.dropout) != FloatBits(header_.dropout)) {
    return Refuse("has a header that differs from this call in its sizes");
  }
  *dropout_key = header.dropout_key;
  return Status();
}

Status ReadHeader(const void* reserve, const Shape& shape, int element_size,
                  ReserveHeader* header) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(ReserveHeader));
  if (shape.dim(0) < kBytes / element_size) {
    return Refuse("has ", shape.dim(0), " elements, fewer than its header of ",
                  kBytes / element_size);
  }
  std::memcpy(header, reserve, sizeof *header);
  if (header->magic != kMagic || header->checksum != Checksum(*header)) {
    return Refuse("was not written by this package's CudnnRNN on the CPU");
  }
  if (header->element_size != static_cast<uint32_t>(element_size)) {
    return Refuse("holds elements of ", header->element_size, " bytes, not of ",
                  element_size);
  }
  if (shape.dim(0) != header->size) {
    return Refuse("must have ", header->size, " elements but has ",
                  shape.dim(0));
  }
  return Status();
}

}  // namespace tf_lstm_ops
