// The steps of a sequence as a graph.
//
// Short sequences are unrolled. A graph of hundreds of steps would take seconds
// to compile, again for each length; so longer ones are a loop whose body is a
// chunk of unrolled steps. A body of a single step would copy whole outputs in
// each of them, which a chunk does once.
#ifndef TF_LSTM_OPS_BACKENDS_METAL_STEPS_H_
#define TF_LSTM_OPS_BACKENDS_METAL_STEPS_H_

#include <functional>

#include "backends/metal/value.h"

namespace tf_lstm_ops::metal {

// So many steps are unrolled at most.
constexpr int64_t kChunk = 32;

struct Stepped {
  Values state;  // after the step
  Values rows;   // what it leaves, [B,.] each; of all steps [T,B,.]
};

// One step, from its rows of the sequences, [B,.] each, and the state.
using Step = std::function<Stepped(const Values& rows, const Values& state)>;

struct Steps {
  MPSGraph* graph;
  int64_t time;
  int64_t batch;
  bool reversed;  // from the last step to the first

  // sequences [T,B,.], or numbers; state: tensors; widths: of the rows that
  // `step` leaves, in its order.
  Stepped Run(const Values& sequences, const Values& state,
              const Extents& widths, const Step& step) const;

 private:
  Stepped Unroll(int64_t time, const Values& sequences, Values state,
                 const Extents& widths, const Step& step) const;
  Stepped Loop(int64_t chunks, const Values& sequences, const Values& state,
               const Extents& widths, const Step& step) const;
};

}  // namespace tf_lstm_ops::metal

#endif  // TF_LSTM_OPS_BACKENDS_METAL_STEPS_H_
