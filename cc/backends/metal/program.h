// Program: a graph with its arguments and results. MPSGraph compiles it when it first runs; the
// cache keeps it for calls with the same shapes and options.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_PROGRAM_H_
#define TF_LSTM_OPS_BACKENDS_METAL_PROGRAM_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/metal/value.h"

namespace tf_lstm_ops::metal {

// MPSDataTypeBFloat16, which SDKs before that of macOS 14 do not define.
constexpr auto kBFloat16Type =
    static_cast<MPSDataType>(MPSDataTypeAlternateEncodingBit | MPSDataTypeFloat16);

// The size of an element in bytes.
size_t BytesOf(MPSDataType type);

class Program {
 public:
  // An argument or a result. Owns a reference to `tensor` and `shape`.
  struct Port {
    int index;  // chosen by the caller
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

  // Adds an argument. Returns it, converted to Float32 unless it is Int32, or 0 if it has no
  // elements.
  Value AddArgument(int index, const Extents& shape, MPSDataType type);
  // Adds a result: `value`, broadcast to `shape` and rounded to `type`. Does nothing if the shape
  // has no elements.
  void AddResult(int index, const Value& value, const Extents& shape, MPSDataType type);

 private:
  MPSGraph* graph_;
  std::vector<Port> arguments_, results_;
};

// The number of programs in the cache, the most recently used ones. A training step of two layers
// has four programs for each length of its sequences: 64 lengths. docs/reference/gpu.md says what
// to do with more.
constexpr size_t kCachedPrograms = 256;

// Returns the program of a key. If the cache has none, calls `build` with a new program and keeps
// it. The key must contain everything that `build` depends on. Thread-safe.
std::shared_ptr<const Program> FindProgram(const std::string& key,
                                           const std::function<void(Program*)>& build);

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_PROGRAM_H_
