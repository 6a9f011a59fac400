// What a stack of recurrent layers computes, in double and step by step, after
// the equations in cuDNN's documentation. Nothing of the package is used.
#ifndef TF_LSTM_OPS_TESTS_CUDA_STAND_IN_RNN_H_
#define TF_LSTM_OPS_TESTS_CUDA_STAND_IN_RNN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "backends/cuda/api/cudnn.h"

namespace stand_in {

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

// Numbers in memory of a type.
struct Numbers {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  void* data = nullptr;

  explicit operator bool() const { return data != nullptr; }
  double Get(int64_t n) const;
  void Set(int64_t n, double value) const;
  Numbers From(int64_t n) const;  // those from the n-th on
};

int64_t SizeOf(cudnnDataType_t type);

// Where the matrices and biases stand in the weight space, in elements.
struct Region {
  int64_t offset = 0, rows = 0, columns = 0;
};
class WeightSpace {
 public:
  // `scattered`: not as documented, but with gaps, biases beside matrices.
  WeightSpace(const Model& model, bool scattered);

  int64_t size() const { return size_; }
  // IDs as cudnnGetRNNWeightParams has them; of no size where there is none.
  const Region& Matrix(int64_t pseudo_layer, int64_t id) const;
  const Region& Bias(int64_t pseudo_layer, int64_t id) const;

 private:
  void Add(Region* region, int64_t rows, int64_t columns, int64_t gap);

  int64_t ids_;
  int64_t size_ = 0;
  std::vector<Region> matrices_, biases_;
};

// One batch of sequences: index of the first number of a row.
struct Batch {
  int64_t time, batch;
  std::vector<int> lengths;
  bool batch_major;

  int64_t Row(int64_t t, int64_t b) const {
    return batch_major ? b * time + t : t * batch + b;
  }
};

struct Forward {
  Numbers x, y, hx, hy, cx, cy, weights;
};
struct Backward {
  Numbers x, y, dy, dx, hx, dhy, dhx, cx, dcy, dcx, weights, weight_gradients;
};

// A pass of a stack; its tape is what reserve space holds.
class Stack {
 public:
  static int64_t TapeSize(const Model& model, const Batch& batch);

  Stack(const Model& model, const Batch& batch, const WeightSpace& space,
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
  double Input(const Numbers& x, int64_t layer, int64_t t, int64_t b,
               int64_t n) const;
  // Steps of a row in the order in which a direction takes them.
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

}  // namespace stand_in

#endif  // TF_LSTM_OPS_TESTS_CUDA_STAND_IN_RNN_H_
