// What distinguishes the ops of this dialect from each other, their attributes,
// and the checks that a signature cannot express.
#ifndef TF_LSTM_OPS_DIALECTS_KERAS_FORMS_H_
#define TF_LSTM_OPS_DIALECTS_KERAS_FORMS_H_

#include "core/gate_order.h"
#include "core/rnn.h"
#include "core/status.h"
#include "dialects/inputs.h"
#include "dialects/keras/signatures.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::keras {

// What distinguishes the layers.
struct Form {
  CellKind cell;
  GateOrder order;
  const Signature& (*forward)();
  const Signature& (*gradient)();
};

inline constexpr Form kLstm = {CellKind::kLstm, kOrderIFCO, &KerasLSTM,
                               &KerasLSTMGrad};
inline constexpr Form kGru = {CellKind::kGru, kOrderURN, &KerasGRU,
                              &KerasGRUGrad};

struct Attributes {
  float cell_clip = 0;
  bool go_backwards = false;
  bool zero_output_for_mask = false;
  bool return_sequences = true;

  Status Init(const tf::KernelConstruction& construction, CellKind cell) {
    if (cell == CellKind::kLstm) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          construction.GetAttr("cell_clip", &cell_clip));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("go_backwards", &go_backwards));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        construction.GetAttr("zero_output_for_mask", &zero_output_for_mask));
    return construction.GetAttr("return_sequences", &return_sequences);
  }
};

// Of a gradient op: the steps of the output and of its gradient.
inline Status CheckOutputs(const Attributes& attributes, const Inputs& call) {
  const int64_t steps =
      attributes.return_sequences ? call.sizes.time : int64_t{1};
  for (const char* name : {"output", "output_grad"}) {
    const int64_t got = call.Find(name)->shape().dim(1);
    if (got != steps) {
      return InvalidArgument(name, ".dim_size(1) != time_length: ", got,
                             " vs. ", steps);
    }
  }
  return Status();
}

inline Status CheckReserve(const Inputs& call, int64_t want) {
  const int64_t got = call.Find("reserve")->size();
  if (got == want) return Status();
  return InvalidArgument("reserve.dim_size(0) != ", want, ": ", got, " vs. ",
                         want,
                         "; it must come from a forward call with "
                         "training=True and the same arguments");
}

}  // namespace tf_lstm_ops::keras

#endif  // TF_LSTM_OPS_DIALECTS_KERAS_FORMS_H_
