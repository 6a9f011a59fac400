#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops {

Shape MultiLayerRnn::SequenceShape(int64_t width) const {
  return time_major ? Shape({time, batch, width}) : Shape({batch, time, width});
}

Shape MultiLayerRnn::StateShape(int64_t width) const {
  const int64_t states = model.pseudo_layers();
  return time_major ? Shape({states, batch, width})
                    : Shape({batch, states, width});
}

std::unique_ptr<DropoutMask> MakeDropoutMask(const MultiLayerRnn& rnn,
                                             float dropout, uint64_t key) {
  if (!HasDropout(rnn, dropout)) return nullptr;
  return std::make_unique<DropoutMask>(key, dropout, rnn.rows(),
                                       rnn.model.output_size());
}

RnnConfig LayerConfig(const RnnModel& model, int64_t layer) {
  RnnConfig config;
  config.cell = model.cell;
  config.input_size = model.InputSize(layer);
  config.cell_size = model.cell_size;
  config.hidden_size = model.hidden_size;
  config.gate_order = CudnnGateOrder(model.cell);
  return config;
}

Sequence DirectionSequence(const MultiLayerRnn& rnn, int64_t direction,
                           const int32_t* lengths) {
  Sequence sequence;
  sequence.batch = rnn.batch;
  sequence.time = sequence.steps = rnn.time;
  sequence.time_major = rnn.time_major;
  sequence.reversed = direction == 1;
  sequence.lengths = lengths;
  return sequence;
}

LayerRegions RegionsOf(const MultiLayerRnn& rnn, int64_t layer,
                       int64_t direction) {
  const RnnModel& model = rnn.model;
  const int64_t p = model.PseudoLayer(layer, direction);
  const int gates = model.gates();
  LayerRegions regions = {};
  if (layer > 0 || !model.skip_input) {
    regions.input = rnn.params.Matrix(p, 0);
    regions.input.rows *= gates;
  }
  regions.recurrent = rnn.params.Matrix(p, gates);
  regions.recurrent.rows *= gates;
  if (model.projected()) regions.projection = rnn.params.Matrix(p, 2 * gates);
  regions.input_bias = rnn.params.Bias(p, 0);
  regions.input_bias.columns *= gates;
  regions.recurrent_bias = rnn.params.Bias(p, gates);
  regions.recurrent_bias.columns *= gates;
  return regions;
}

}  // namespace tf_lstm_ops
