// A multi-layer RNN in double, step by step. Source: the equations in cuDNN's
// documentation. Independent of the package's own code.
#ifndef TF_LSTM_OPS_TESTS_CUDA_FAKE_RNN_H_
#define TF_LSTM_OPS_TESTS_CUDA_FAKE_RNN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "backends/cuda/api/cudnn.h"

namespace fake {

struct Model {
  cudnnRNNMode_t mode;
  bool skips_input;
  int64_t layers, directions, input, hidden, projection;

  int64_t gates() const {
    return mode == CUDNN_LSTM ? 4 : mode == CUDNN_GRU ? 3 : 1;
  }
  bool is_projected() const { return projection < hidden; }
  int64_t pseudo_layers() const { return layers * directions; }
  int64_t output() const { return directions * projection; }
  int64_t InputOf(int64_t layer) const { return layer ? output() : input; }
};

// Elements in memory of a type.
struct Elements {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  void* data = nullptr;

  explicit operator bool() const { return data != nullptr; }
  double Get(int64_t n) const;
  void Set(int64_t n, double value) const;
};

int64_t SizeOf(cudnnDataType_t type);

// The positions of matrices and biases in the weight space, in elements.
struct Region {
  int64_t offset = 0, rows = 0, columns = 0;
};
class WeightSpace {
 public:
  explicit WeightSpace(const Model& model);

  int64_t size() const { return size_; }
  // IDs are those of cudnnGetRNNWeightParams. A missing matrix or bias is
  // empty.
  const Region& Matrix(int64_t pseudo_layer, int64_t id) const;
  const Region& Bias(int64_t pseudo_layer, int64_t id) const;

 private:
  void Add(Region* region, int64_t rows, int64_t columns);

  int64_t ids_;
  int64_t size_ = 0;
  std::vector<Region> matrices_, biases_;
};

// A batch of sequences.
struct Batch {
  int64_t time, batch;
  std::vector<int> lengths;
  bool batch_major;

  int64_t Row(int64_t t, int64_t b) const {
    return batch_major ? b * time + t : t * batch + b;
  }
};

struct Forward {
  Elements x, y, hx, hy, cx, cy, weights;
};
struct Backward {
  Elements x, y, dy, dx, hx, dhy, dhx, cx, dcy, dcx, weights, weight_gradients;
};

// The passes. The tape holds the saved activations, [pseudo-layer, T, B, kRows,
// H], in the reserve.
class Rnn {
 public:
  static int64_t TapeSize(const Model& model, const Batch& batch);

  Rnn(const Model& model, const Batch& batch, const WeightSpace& space,
      double* tape)
      : model_(model), batch_(batch), space_(space), tape_(tape) {}

  void RunForward(const Forward& f) const;
  // Overwrites what the tape has of the forward pass.
  void RunBackwardData(const Backward& b) const;
  // After RunBackwardData. Adds to the gradients.
  void RunBackwardWeights(const Backward& b) const;

 private:
  // Rows of a step on the tape.
  enum Row { kGates = 0, kC = 4, kM = 5, kH = 6, kDh = 7, kRows = 8 };

  double* At(int64_t pseudo_layer, int64_t t, int64_t b, Row row) const;
  double Input(const Elements& x, int64_t layer, int64_t t, int64_t b,
               int64_t n) const;
  // Calls step(t) for the steps of a row in the order of a direction.
  void Steps(int64_t direction, int64_t b,
             const std::function<void(int64_t)>& step) const;
  void ForwardRow(const Forward& f, int64_t p, int64_t b) const;
  void BackwardRow(const Backward& f, int64_t p, int64_t b,
                   std::vector<double>* below) const;

  const Model& model_;
  const Batch& batch_;
  const WeightSpace& space_;
  double* tape_;
};

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_CUDA_FAKE_RNN_H_
