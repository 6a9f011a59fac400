// The passes of a layer direction in oneDNN: lstm_forward and lstm_backward,
// or lbr_gru_forward and lbr_gru_backward, in float32.
#ifndef TF_LSTM_OPS_BENCHMARKS_ENGINE_ONEDNN_LAYER_H_
#define TF_LSTM_OPS_BENCHMARKS_ENGINE_ONEDNN_LAYER_H_

#include <memory>
#include <string>

#include "case.h"

namespace engine_benchmark {

// Sequences are time-major, as oneDNN prefers. The weights have the layouts
// that oneDNN chooses and are reordered in the constructor. A call of a pass
// returns when its result is complete. Throws dnnl::error.
class OnednnLayer {
 public:
  OnednnLayer(const Case& c, const Inputs& inputs);
  ~OnednnLayer();

  void Infer();
  void Train();
  // Reads the results of Train. Adds to the gradients of the weights, as
  // oneDNN defines it.
  void Backward();

  // Calls each pass once, with gradients of zero before.
  Results Compute();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Version, threading runtime and instruction set of the library.
std::string DescribeOnednn();

}  // namespace engine_benchmark

#endif  // TF_LSTM_OPS_BENCHMARKS_ENGINE_ONEDNN_LAYER_H_
