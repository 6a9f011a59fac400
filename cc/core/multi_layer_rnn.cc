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

}  // namespace tf_lstm_ops
