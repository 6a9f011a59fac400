// Reserve: the layout of reserve_space on the CPU. A training call of a
// CudnnRNN op returns reserve_space for its backward pass. The other backends
// use the header in layouts of their own.
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
  uint32_t element_size;  // in bytes
  uint64_t checksum;      // of the rest of the header
  uint64_t fingerprint;   // of the arguments that both passes share
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

  // Writes the header to `reserve`, at least 64 bytes of host memory.
  void WriteHeader(uint64_t dropout_key, void* reserve) const;
  // Writes the header of a reserve of `size` elements in another backend's
  // layout. Check rejects this header.
  void WriteForeignHeader(uint64_t dropout_key, int64_t size,
                          void* reserve) const;
  // Checks the reserve_space of a backward pass, in host memory, and sets
  // `dropout_key` to the forward pass's key. `shape` is the tensor's shape.
  // Errors: InvalidArgument where `reserve` does not come from a forward pass
  // of the same problem.
  Status Check(const void* reserve, const Shape& shape,
               uint64_t* dropout_key) const;

 private:
  ReserveHeader header_;
  MultiLayerReserveLayout layout_;
};

// Reads the header at `reserve`, in host memory, in the layout of any backend.
// `shape` is the shape of reserve_space, `element_size` the size of its
// elements in bytes. Errors: InvalidArgument where `reserve` has no header of
// this package, or the header has another element size or number of elements.
Status ReadHeader(const void* reserve, const Shape& shape, int element_size,
                  ReserveHeader* header);

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_RESERVE_H_
