// The equations of the layer-normalised LSTM and GRU cells, forward and
// backward. Only the CPU backend has these cells.
//
// Notation as in lstm_cell.h. LN(a) = (a - mean(a)) / sqrt(variance(a) +
// epsilon), where the mean and the variance are those of all elements of a row.
// The parts of x and of h are normalised apart, each over all of its gates and
// units:
//
//   a = LN(W x)    r = LN(R h_prev)
//
// LSTM, for each of the four gates:
//
//   z  = gx * a + gh * r + b      i, f, o, ci as in LstmCell
//   cs = f * cs_prev + i * ci     n = gc * LN(cs) + bc
//   h  = o * tanh(n)
//
// The next step reads cs, or n with LayerNormOptions::carries_normalized_state.
//
// GRU: the input terms of GruCell are gx * a + b, its recurrent terms gh * r +
// b of their own.
//
// Sources: J. Ba, J. Kiros, G. Hinton, "Layer Normalization" (2016). The LSTM
// that carries cs is LayerNormLSTM of haste; the one that carries n is
// LayerNormLSTMCell of TensorFlow Addons. The GRU is LayerNormGRU of haste.
#ifndef TF_LSTM_OPS_CORE_LAYER_NORM_CELL_H_
#define TF_LSTM_OPS_CORE_LAYER_NORM_CELL_H_

#include "core/cells.h"

namespace tf_lstm_ops {

// Indices of SavedActivations of an LSTM. The parts [8, H] are those of x and
// of h before the normalisation, by pre-activation. A GRU has the parts only.
enum LayerNormSaved { kSavedCarry, kSavedParts };

// A cell whose pre-activations are the parts of x, followed by those of h.
template <class Math, template <class> class CellOf, class Constants>
struct LayerNormCell : CellOf<Math> {
  using Plain = CellOf<Math>;
  using typename Plain::V;

  static constexpr int kInputPreActivations = Plain::kInputPreActivations;
  static constexpr int kFirstRecurrent = kInputPreActivations;
  static constexpr int kRecurrentPreActivations =
      Plain::kRecurrentPreActivations;
  static constexpr int kPreActivations =
      kInputPreActivations + kRecurrentPreActivations;
  static constexpr bool kHasForgetBias = false;
  static constexpr bool kHasPeephole = false;
  static constexpr bool kHasOutputGate = false;  // h needs sums over the row
  static constexpr bool kReducesRows = true;
  static constexpr int kSavedForBackward = Constants::kSavedForBackward;
  static constexpr int kPartsAt = Plain::kHasCellState ? kSavedParts : 0;

  // Whether pre-activation p of the plain cell has a part of x, or of h.
  static constexpr bool HasInput(int p) { return p < kInputPreActivations; }
  static constexpr bool HasRecurrent(int p) {
    return p >= Plain::kFirstRecurrent;
  }
  // The number of this part of h.
  static constexpr int RecurrentPart(int p) {
    return p - Plain::kFirstRecurrent;
  }
};

template <class Math>
struct LayerNormLstmCell
    : LayerNormCell<Math, LstmCell, LayerNormLstmConstants<Math>> {};
template <class Math>
struct LayerNormGruCell
    : LayerNormCell<Math, GruCell, LayerNormGruConstants<Math>> {};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LAYER_NORM_CELL_H_
