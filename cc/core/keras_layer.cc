#include "core/keras_layer.h"

namespace tf_lstm_ops {
namespace {

// The cell with any activations, by that with the default ones.
CellKind WithActivations(CellKind cell) {
  switch (cell) {
    case CellKind::kLstm:
      return CellKind::kActivationLstm;
    case CellKind::kGru:
      return CellKind::kActivationGru;
    case CellKind::kResetBeforeGru:
      return CellKind::kActivationResetBeforeGru;
    default:
      return cell;
  }
}

}  // namespace

LstmActivations KerasActivations(Activation activation,
                                 Activation recurrent_activation) {
  LstmActivations activations;
  activations.gate.fill(recurrent_activation);
  activations.gate[kGateC] = activations.state = activation;
  return activations;
}

RnnConfig KerasConfig(const KerasLayer& layer) {
  RnnConfig config;
  config.cell = layer.has_default_activations() ? layer.cell
                                                : WithActivations(layer.cell);
  config.options = layer.options;
  const int gates = GateCount(layer.cell);
  config.gate_order = gates == 4   ? kOrderIFCO
                      : gates == 3 ? kOrderURN
                                   : kOrderSingle;
  config.cell_clip = layer.cell_clip;
  config.proj_clip = layer.proj_clip;
  return config;
}

Sequence KerasSequence(const KerasLayer& layer, int direction, int64_t batch,
                       int64_t time, const bool* mask) {
  Sequence sequence;
  sequence.batch = batch;
  sequence.time = sequence.steps = time;
  sequence.time_major = false;
  sequence.reversed = layer.go_backwards || direction > 0;
  sequence.in_order_of_computation =
      layer.in_order_of_computation || !layer.return_sequences;
  sequence.mask = mask;
  return sequence;
}

}  // namespace tf_lstm_ops
