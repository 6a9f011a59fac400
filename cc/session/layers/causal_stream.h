// CausalLayer: a convolution, which in a stream keeps the steps that the next
// windows need, where it is causal.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_CAUSAL_STREAM_H_
#define TF_LSTM_OPS_SESSION_LAYERS_CAUSAL_STREAM_H_

#include <memory>

#include "session/layer.h"
#include "session/layers/convolution_shape.h"

namespace tf_lstm_ops::session {

class CausalLayer : public Layer {
 public:
  CausalLayer(const Windows& windows, int64_t channels, int64_t units)
      : windows_(windows), channels_(channels), units_(units) {}

  bool Infer(const Shape* in, int in_count, Shape* out,
             Error* error) const final;
  void Run(const LayerCall& call) const final { RunBehind(nullptr, call); }
  Streaming streaming() const final;
  const char* needs() const final;
  int state_count() const final;
  Shape state_shape(int k) const final;
  std::unique_ptr<StreamLayer> NewStreamLayer(int64_t batch, int) const final;

  // Computes the output. `head` [N, before, channels] are the steps before the
  // input, in place of zeros; it may be null.
  virtual void RunBehind(const float* head, const LayerCall& call) const = 0;

 protected:
  Steps StepsOf(const float* head, const Tensor& x) const {
    const int64_t count = x.shape.dims[1];
    return {x.floats(), head, count, windows_.Before(count), channels_};
  }

  const Windows windows_;
  const int64_t channels_, units_;
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_CAUSAL_STREAM_H_
