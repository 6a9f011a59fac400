// The passes of a layer direction that computes a whole batch, in our engine.
#ifndef TF_LSTM_OPS_BENCHMARKS_ENGINE_OUR_LAYER_H_
#define TF_LSTM_OPS_BENCHMARKS_ENGINE_OUR_LAYER_H_

#include "backends/cpu/layer.h"
#include "case.h"

namespace engine_benchmark {

// A whole batch.
inline tf_lstm_ops::Sequence SequenceOf(const Case& c) {
  tf_lstm_ops::Sequence sequence;
  sequence.batch = c.batch;
  sequence.time = sequence.steps = c.steps;
  sequence.time_major = false;
  return sequence;
}

// `inputs` must outlive the object.
class OurLayer {
 public:
  OurLayer(const Case& c, const Inputs& inputs, int threads)
      : case_(c),
        inputs_(inputs),
        threads_(threads),
        h_(c.batch * c.steps * c.units),
        x_grad_(inputs.x.size()),
        activations_(c.batch * c.steps * tf_lstm_ops::SavedCount(c.cell) *
                     c.units),
        state_grads_(2 * c.batch * c.units),
        weights_grad_(inputs.weights.size()),
        packed_(SequenceOf(c)) {}

  // Packs the weights in each call.
  void Infer() { Forward(nullptr, nullptr); }
  // Packs the weights in the first call, as the layers do in inference.
  void InferWithKeptWeights() { Forward(nullptr, &kept_); }
  void Train() { Forward(activations_.data(), nullptr); }
  // Reads the results of Train.
  void Backward() {
    tf_lstm_ops::LayerBackward<float> pass;
    Describe(&pass);
    const int64_t units = case_.units;
    pass.h = h_.data();
    pass.h_stride = pass.h_grad_stride = units;
    const float* saved = activations_.data();
    pass.saved = tf_lstm_ops::ActivationsByPackedRow<const float>(
        saved, case_.cell, units);
    pass.h_grad = inputs_.h_grad.data();
    pass.h0_grad = {state_grads_.data(), units};
    pass.c0_grad = {state_grads_.data() + case_.batch * units, units};
    SetWeights(weights_grad_.data(), &pass.weights_grad);
    pass.x_grad = x_grad_.data();
    tf_lstm_ops::cpu::ComputeBackward(pass, packed_, threads_);
  }

  // Calls each pass once.
  Results Compute() {
    Results results;
    InferWithKeptWeights();
    results.inferred_h = h_;
    Train();
    Backward();
    results.h = h_;
    results.x_grad = x_grad_;
    results.weights_grad = weights_grad_;
    return results;
  }

 private:
  template <class T>
  void SetWeights(T* at, tf_lstm_ops::RnnWeights<T>* weights) const {
    const int gates = static_cast<int>(case_.gates());
    const int64_t row = gates * case_.units;
    weights->input = tf_lstm_ops::ByInput(at, gates, case_.units);
    at += case_.inputs * row;
    weights->recurrent = tf_lstm_ops::ByInput(at, gates, case_.units);
    at += case_.units * row;
    weights->input_bias = at;
    weights->recurrent_bias = at + row;
  }

  void Describe(tf_lstm_ops::LayerDirection<float>* layer) const {
    layer->config.cell = case_.cell;
    layer->config.gate_order =
        case_.is_lstm() ? tf_lstm_ops::kOrderICFO : tf_lstm_ops::kOrderRUN;
    layer->config.input_size = case_.inputs;
    layer->config.cell_size = layer->config.hidden_size = case_.units;
    layer->sequence = SequenceOf(case_);
    SetWeights<const float>(inputs_.weights.data(), &layer->weights);
    layer->x = inputs_.x.data();
    layer->x_stride = case_.inputs;
  }

  void Forward(float* activations, tf_lstm_ops::cpu::KeptWeights* kept) {
    tf_lstm_ops::LayerForward<float> pass;
    Describe(&pass);
    pass.h = h_.data();
    pass.h_stride = case_.units;
    pass.saved = tf_lstm_ops::ActivationsByPackedRow<float>(
        activations, case_.cell, case_.units);
    tf_lstm_ops::cpu::ComputeForward(pass, packed_, threads_, kept);
  }

  const Case case_;
  const Inputs& inputs_;
  const int threads_;
  Values h_, x_grad_, activations_, state_grads_, weights_grad_;
  const tf_lstm_ops::PackedSequence packed_;
  tf_lstm_ops::cpu::KeptWeights kept_;
};

}  // namespace engine_benchmark

#endif  // TF_LSTM_OPS_BENCHMARKS_ENGINE_OUR_LAYER_H_
