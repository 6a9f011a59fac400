// What the attributes and inputs of an op of this dialect ask for, checked.
#ifndef TF_LSTM_OPS_DIALECTS_MPSGRAPH_PROBLEM_H_
#define TF_LSTM_OPS_DIALECTS_MPSGRAPH_PROBLEM_H_

#include <cstdint>
#include <functional>

#include "core/rnn.h"
#include "core/shape.h"
#include "core/status.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::mpsgraph {

// MPSGraphLSTMDescriptor.
struct Descriptor {
  bool reverse = false;  // not if bidirectional
  int64_t directions = 1;
  GateOrder gate_order = kOrderIFCO;
  LstmActivations activations;

  Status Init(const tf::KernelConstruction& construction);
};

struct Problem {
  int64_t time = 0;
  int64_t batch = 0;
  int64_t input = 0;  // I; H where x is added to the gates itself
  int64_t cell = 0;
  int64_t directions = 1;
  bool has_input_weight = true;

  int64_t gates() const { return 4 * cell; }  // of one direction
  int64_t source_width() const {
    return has_input_weight ? input : directions * gates();
  }
  Shape Steps(int64_t width) const {  // [T,N,D*width]
    return Shape({time, batch, directions * width});
  }
};

// The shape of an argument; of unknown rank where the op has none such, or it
// is absent.
using ShapeOf = std::function<Shape(const char*)>;

// Ranks of arguments that do not depend on the directions have been checked.
Status MakeProblem(const Descriptor& descriptor, const ShapeOf& shape_of,
                   Problem* problem);

}  // namespace tf_lstm_ops::mpsgraph

#endif  // TF_LSTM_OPS_DIALECTS_MPSGRAPH_PROBLEM_H_
