// reserve_space: what a training call leaves for its backward pass.
//
//   header                     64 bytes
//   rows of steps              for each pseudo-layer [V, SavedRows(cell), H]
//   outputs of inner layers    for each layer but the last [V, D*P]
//
// V is the sum of the lengths: padding takes no space. The dropout masks take
// none either, since their key is in the header.
#ifndef TF_LSTM_OPS_DIALECTS_CUDNN_RNN_RESERVE_H_
#define TF_LSTM_OPS_DIALECTS_CUDNN_RNN_RESERVE_H_

#include <cstdint>

#include "core/shape.h"
#include "core/status.h"
#include "dialects/cudnn_rnn/model.h"

namespace tf_lstm_ops::cudnn_rnn {

struct ReserveHeader {
  uint32_t magic;
  uint32_t element_size;
  uint64_t checksum;     // of the rest of the header
  uint64_t fingerprint;  // of all that the forward and the backward call share
  uint64_t dropout_key;
  int64_t size;  // of reserve_space, in elements
  uint32_t time, batch;
  int64_t width;
  uint32_t inner_layers;  // L - 1
  float dropout;
};
static_assert(sizeof(ReserveHeader) == 64);

class Reserve {
 public:
  // For elements of this type, of so many bytes.
  Reserve(const Problem& problem, float dropout, TF_DataType type,
          int element_size);

  // In elements.
  int64_t size() const { return header_.size; }
  int64_t body() const;  // where the header ends
  int64_t body_size() const { return size() - body(); }
  // Within the body.
  int64_t Steps(int64_t pseudo_layer) const {
    return pseudo_layer * steps_size_;
  }
  int64_t LayerOutput(int64_t layer) const {
    return pseudo_layers_ * steps_size_ + layer * output_size_;
  }

  void WriteHeader(uint64_t dropout_key, void* reserve) const;
  // The header of a reserve of so many elements that another backend lays out;
  // Check refuses it.
  void WriteForeignHeader(uint64_t dropout_key, int64_t size,
                          void* reserve) const;
  // Errors: InvalidArgument where `reserve` is not what a call for this problem
  // has left.
  Status Check(const void* reserve, const Shape& shape,
               uint64_t* dropout_key) const;

 private:
  ReserveHeader header_;
  int64_t pseudo_layers_, steps_size_, output_size_;
};

// Any header that this package wrote. Errors: InvalidArgument.
Status ReadHeader(const void* reserve, const Shape& shape, int element_size,
                  ReserveHeader* header);

}  // namespace tf_lstm_ops::cudnn_rnn

#endif  // TF_LSTM_OPS_DIALECTS_CUDNN_RNN_RESERVE_H_
