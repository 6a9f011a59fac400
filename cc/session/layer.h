// Layer: what computes a node of a session's graph.
//
// Operands and outputs have the shape [N, ...]. Where a node counts several
// axes as the batch (TimeDistributed), the graph joins them to N before it
// calls the layer, and divides N again behind it.
#ifndef TF_LSTM_OPS_SESSION_LAYER_H_
#define TF_LSTM_OPS_SESSION_LAYER_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "backends/cpu/memory/call_memory.h"
#include "backends/cpu/memory/scratch.h"
#include "core/packed_sequence.h"
#include "session/error.h"
#include "session/tensor.h"

namespace tf_lstm_ops::session {

// The most outputs of a layer: a sequence, and h and c of two directions.
constexpr int kMaxOutputs = 5;

// Memory of a call, which is kept for later calls. Layers share it, one after
// the other: what is in it is undefined at the start of Layer::Run.
struct LayerMemory {
  cpu::CallMemory arrays[3];
  cpu::CallMemory engine;
  PackedSequence valid[2];  // of each direction
  float* stream = nullptr;  // of StreamLayer::scratch_floats() elements

  float* Floats(int array, int64_t count) {
    return static_cast<float*>(arrays[array].Get(count * sizeof(float)));
  }
};

// The operands and outputs of a call of a layer. Shapes are those of
// Layer::Infer, all known. Outputs do not overlap operands, but that of a layer
// with works_in_place() may be operand 0.
struct LayerCall {
  const Tensor* in;
  int in_count;
  const Tensor* out;
  int out_count;
  int threads;
  LayerMemory* memory;
};

// How a layer takes part in a stream.
enum class Streaming : uint8_t {
  kByStep,        // a step of the output depends on this step of the input only
  kKeepsState,    // NewStreamLayer() keeps a state
  kNeedsSequence  // needs steps of the future, or all of them
};

// The states of a layer in a stream, and their computation. One thread at a
// time uses it.
class StreamLayer {
 public:
  virtual ~StreamLayer() = default;

  // Plans calls of 1, 2, 4, ... up to block_steps steps, before Place().
  virtual void Prepare(int64_t, LayerMemory*) {}  // (block_steps, memory)
  // Assigns the arrays; see cpu::Scratch. They begin as zeros.
  virtual void Place(cpu::Scratch<float>* memory) = 0;
  // Elements of LayerMemory::stream that Run() needs.
  virtual int64_t scratch_floats() const { return 0; }
  // Computes `steps` steps, a power of two: operand 0 is [B, steps, ...]. A
  // layer that returns its last step writes the output after them. It allocates
  // nothing.
  virtual void Run(int64_t steps, const LayerCall& call) = 0;
  // State k of the layer, [B, Layer::state_size(k)].
  virtual float* state(int k) = 0;
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual int output_count() const { return 1; }
  virtual Type output_type(int) const { return Type::kFloat; }
  // Sets the shapes of the outputs from those of the operands. A dimension may
  // be kUnknown in operands, and is then so in the outputs that depend on it.
  // Fails with the code that *error has, where a shape does not fit.
  virtual bool Infer(const Shape* in, int in_count, Shape* out,
                     Error* error) const = 0;
  // Computes the outputs. N may be 0, and so may other dimensions. After the
  // first call of a shape, calls allocate nothing. Throws std::bad_alloc.
  virtual void Run(const LayerCall& call) const = 0;

  // Checks values of operand 0, an input of the session of type kInt, before
  // anything is computed.
  virtual bool CheckValues(const Tensor&, Error*) const { return true; }
  // Whether an output may be operand 0. A layer that only changes the shape
  // then computes nothing.
  virtual bool works_in_place() const { return false; }

  // The rest is for streams. The first axis behind the batch is time.
  virtual Streaming streaming() const { return Streaming::kByStep; }
  // What kNeedsSequence is due to, as in "a layer reads the sequence
  // backwards".
  virtual const char* needs() const { return "needs the whole sequence"; }
  // Whether the layer turns a sequence into an array without time.
  virtual bool takes_last_step() const { return false; }
  // The number of arrays of the state, and the shape of each without B.
  virtual int state_count() const { return 0; }
  virtual Shape state_shape(int) const { return {}; }
  // With what each row of a state begins; null for zeros.
  virtual const float* initial_state(int) const { return nullptr; }
  // Of a layer with kKeepsState. The layer must outlive it.
  virtual std::unique_ptr<StreamLayer> NewStreamLayer(int64_t, int) const {
    return nullptr;  // (int64_t batch, int threads)
  }
};

// Writes a row, or zeros where it is null, to `rows` rows of `size` elements.
inline void FillRows(const float* row, int64_t size, int64_t rows, float* to) {
  if (!row) {
    std::fill_n(to, rows * size, 0.0F);
    return;
  }
  for (int64_t r = 0; r < rows; ++r) to = std::copy_n(row, size, to);
}

// Fails unless `in` has `rank` axes.
inline bool RequireRank(const Shape& in, int rank, Error* error) {
  return in.rank == rank ||
         Fail(error, error->code, "its input has %d axes, must have %d",
              in.rank, rank);
}

// Fails unless a dimension is `wanted` or unknown.
inline bool RequireSize(const char* what, int64_t size, int64_t wanted,
                        Error* error) {
  return size == wanted || size == kUnknown ||
         Fail(error, error->code, "%s is %lld, must be %lld", what,
              static_cast<long long>(size), static_cast<long long>(wanted));
}

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYER_H_
