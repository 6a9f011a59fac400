// Session: a chain of layers with weights that do not change.
#ifndef TF_LSTM_OPS_SESSION_SESSION_H_
#define TF_LSTM_OPS_SESSION_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/frozen_product.h"
#include "session/error.h"
#include "session/file_format.h"
#include "session/mapped_file.h"
#include "session/recurrent_layer.h"

namespace tf_lstm_ops::session {

// The batch and the time of a call, and its arrays as in the C header.
struct SessionCall {
  int64_t batch;
  int64_t time;
  const float* x;
  const uint8_t* mask;
  float* y;
  int64_t y_count;
};

// Sets `product` to a * b * c of numbers that are not negative. Returns whether
// an array of so many floats may exist.
bool ArraySize(int64_t a, int64_t b, int64_t c, int64_t* product);

class Session {
 public:
  // `threads` of a call, from 1 to kMaxThreads.
  explicit Session(int threads);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Opens a file, or the bytes of one. Call one of them once. Errors: as in the
  // C header. Throw std::bad_alloc.
  bool Open(const char* path, Error* error);
  bool OpenData(const void* data, uint64_t size, Error* error);

  // The bytes of the file.
  const void* data() const { return data_; }
  uint64_t size() const { return size_; }
  int threads() const { return threads_; }
  int64_t input_size() const { return layers_.front().input_size; }
  int64_t output_size() const { return layers_.back().output_size(); }
  // Floats of the states of one row.
  int64_t state_size() const;
  bool returns_sequence() const;
  // The number of layers before the first one that reads the sequence
  // backwards.
  size_t forward_layers() const;
  bool can_stream() const { return forward_layers() == layers_.size(); }
  // The most features of the output of a layer.
  int64_t max_features() const;

  const std::vector<Layer>& layers() const { return layers_; }
  // Of layer k; null if the layer is not recurrent.
  const RecurrentLayer* recurrent(size_t k) const {
    return recurrent_[k].get();
  }
  // y = f(x W + b) of dense layer k. x: [rows, I]. y: [rows, units], which must
  // not overlap x. The bits of a row do not depend on the number of rows.
  void RunDense(size_t k, const float* x, int64_t rows, float* y) const;

  // Computes whole sequences. Thread-safe. After the first call of a shape and
  // with the most valid steps, calls allocate nothing. Error: InvalidArgument.
  // Throws std::bad_alloc.
  bool Run(const SessionCall& call, Error* error) const;

 private:
  struct Workspace;
  class Lease;

  bool CheckCall(const SessionCall& call, Error* error) const;
  void RunLayers(const SessionCall& call, Workspace* workspace) const;

  const int threads_;
  MappedFile file_;  // of Open
  const void* data_ = nullptr;
  uint64_t size_ = 0;
  std::vector<Layer> layers_;
  // By layer; null for layers of another kind.
  std::vector<std::unique_ptr<RecurrentLayer>> recurrent_;
  std::vector<std::unique_ptr<cpu::FrozenProduct>> products_;
  // A list that only grows. It has no lock, which a forked child would find
  // locked for ever.
  mutable std::atomic<Workspace*> workspaces_{nullptr};
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_SESSION_H_
