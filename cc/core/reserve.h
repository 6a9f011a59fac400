// Reserve: the layout of reserve_space, which a training call of the CudnnRNN
// family leaves for its backward pass.
//
//   header     64 bytes
//   body       MultiLayerReserveLayout with rows = V and the outputs of all
//              layers but the last
//
// V is the sum of the lengths: padding takes no space. Dropout masks take no
// space either: the backward pass recomputes them from the key in the header.
#ifndef TF_LSTM_OPS_CORE_RESERVE_H_
#define TF_LSTM_OPS_CORE_RESERVE_H_

#include <cstdint>

#include "core/multi_layer_rnn.h"
#include "core/reserve_layout.h"
#include "core/shape.h"
#include "core/status.h"

namespace tf_lstm_ops {

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
  // `element_type` identifies the element type in the fingerprint;
  // `element_size` is its size in bytes.
  Reserve(const MultiLayerRnn& rnn, float dropout, int element_type,
          int element_size);

  // Sizes and offsets are in elements.
  int64_t size() const { return header_.size; }
  int64_t body() const;  // the end of the header
  int64_t body_size() const { return size() - body(); }
  // Offsets within the body.
  int64_t Activations(int64_t pseudo_layer) const {
    return layout_.Activations(pseudo_layer);
  }
  int64_t LayerOutput(int64_t layer) const {
    return layout_.LayerOutput(layer);
  }

  void WriteHeader(uint64_t dropout_key, void* reserve) const;
  // The header of a reserve of `size` elements in another backend's layout.
  // Check refuses it.
  void WriteForeignHeader(uint64_t dropout_key, int64_t size,
                          void* reserve) const;
  // Errors: InvalidArgument where `reserve` does not come from a forward pass
  // of the same problem.
  Status Check(const void* reserve, const Shape& shape,
               uint64_t* dropout_key) const;

 private:
  ReserveHeader header_;
  MultiLayerReserveLayout layout_;
};

// Any header that this package wrote. Errors: InvalidArgument.
Status ReadHeader(const void* reserve, const Shape& shape, int element_size,
                  ReserveHeader* header);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_RESERVE_H_
