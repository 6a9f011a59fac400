// Program: a graph with its arguments and results, which is compiled once and
// kept for calls of the same shapes and options.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_PROGRAM_H_
#define TF_LSTM_OPS_BACKENDS_METAL_PROGRAM_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/metal/value.h"

namespace tf_lstm_ops::metal {

size_t BytesOf(MPSDataType type);

class Program {
 public:
  // A tensor of the graph that is exchanged with the caller.
  struct Port {
    int index;  // the caller's
    MPSGraphTensor* tensor;
    MPSShape* shape;
    MPSDataType type;
    size_t bytes;
  };

  Program();
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  MPSGraph* graph() const { return graph_; }
  const std::vector<Port>& arguments() const { return arguments_; }
  const std::vector<Port>& results() const { return results_; }

  // An argument of any type, as Float32. 0 where it has no elements.
  Value AddArgument(int index, const Extents& shape, MPSDataType type);
  // A result, from a value that broadcasts to its shape.
  void AddResult(int index, const Value& value, const Extents& shape,
                 MPSDataType type);

 private:
  MPSGraph* graph_;
  std::vector<Port> arguments_, results_;
};

// So many programs are kept, those used last.
constexpr size_t kKeptPrograms = 64;

// The program for a key, which must tell everything that `build` depends on.
// Safe to call from any thread.
std::shared_ptr<const Program> FindProgram(
    const std::string& key, const std::function<void(Program*)>& build);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_PROGRAM_H_
