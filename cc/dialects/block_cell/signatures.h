// The ops of the block-cell dialect: TensorFlow's LSTMBlockCell, BlockLSTM,
// BlockLSTMV2 and their gradients. The arguments have the names, order,
// defaults and shapes of the stock ops.
//
// The two FullGrad ops have no stock counterpart. They take the gradients of
// all seven outputs and return the gradients of all inputs.
#ifndef TF_LSTM_OPS_DIALECTS_BLOCK_CELL_SIGNATURES_H_
#define TF_LSTM_OPS_DIALECTS_BLOCK_CELL_SIGNATURES_H_

#include "core/signature.h"

namespace tf_lstm_ops::block_cell {

// The numbers of the inputs. Each op has some of these inputs, in this order.
enum InputNumber {
  kInSeqLenMax,
  kInX,
  kInCsPrev,
  kInHPrev,
  kInW,
  kInWci,
  kInWcf,
  kInWco,
  kInB,
  // The outputs of the forward op; the first six are numbered by LstmSaved.
  kInI,
  kInCs,
  kInF,
  kInO,
  kInCi,
  kInCo,
  kInH,
  // The gradients with respect to these outputs, in the same order.
  kInIGrad,
  kInCsGrad,
  kInFGrad,
  kInOGrad,
  kInCiGrad,
  kInCoGrad,
  kInHGrad
};

const Signature& LSTMBlockCell();
const Signature& LSTMBlockCellGrad();
const Signature& LSTMBlockCellFullGrad();
const Signature& BlockLSTM();
const Signature& BlockLSTMGrad();
const Signature& BlockLSTMV2();
const Signature& BlockLSTMGradV2();
const Signature& BlockLSTMFullGrad();

}  // namespace tf_lstm_ops::block_cell

#endif  // TF_LSTM_OPS_DIALECTS_BLOCK_CELL_SIGNATURES_H_
