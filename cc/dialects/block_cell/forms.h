// What distinguishes the ops of this dialect from each other, and their
// attributes.
#ifndef TF_LSTM_OPS_DIALECTS_BLOCK_CELL_FORMS_H_
#define TF_LSTM_OPS_DIALECTS_BLOCK_CELL_FORMS_H_

#include <string>

#include "core/gate_order.h"
#include "core/status.h"
#include "dialects/block_cell/signatures.h"
#include "tf/kernel.h"

namespace tf_lstm_ops::block_cell {

struct Form {
  const Signature& (*signature)();
  bool sequence = false;
  GateOrder order = kOrderICFO;
  bool is_forward = false;
  bool has_forget_bias = false;
  bool from_all_outputs = false;  // of a gradient; its order is an attribute
};

inline constexpr Form kCell = {&LSTMBlockCell, false, kOrderICFO, true, true};
inline constexpr Form kBlock = {&BlockLSTM, true, kOrderICFO, true, true};
inline constexpr Form kBlockV2 = {&BlockLSTMV2, true, kOrderIFCO, true};
inline constexpr Form kCellGrad = {&LSTMBlockCellGrad};
inline constexpr Form kBlockGrad = {&BlockLSTMGrad, true};
inline constexpr Form kBlockGradV2 = {&BlockLSTMGradV2, true, kOrderIFCO};
inline constexpr Form kCellFullGrad = {
    &LSTMBlockCellFullGrad, false, kOrderICFO, false, false, true};
inline constexpr Form kBlockFullGrad = {
    &BlockLSTMFullGrad, true, kOrderICFO, false, false, true};

struct Attributes {
  GateOrder order = kOrderICFO;
  float forget_bias = 0;
  float cell_clip = 0;
  bool use_peephole = false;

  Status Init(const tf::KernelConstruction& construction, const Form& form) {
    order = form.order;
    if (form.has_forget_bias) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          construction.GetAttr("forget_bias", &forget_bias));
    }
    if (form.is_forward) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          construction.GetAttr("cell_clip", &cell_clip));
    }
    if (form.from_all_outputs) {
      std::string name;
      TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr("gate_order", &name));
      order = name == "IFCO" ? kOrderIFCO : kOrderICFO;
    }
    return construction.GetAttr("use_peephole", &use_peephole);
  }
};

inline Status CheckSeqLenMax(int64_t steps, int64_t time) {
  if (steps >= 0 && steps <= time) return Status();
  return InvalidArgument("seq_len_max must be between 0 and ", time, " but is ",
                         steps);
}

}  // namespace tf_lstm_ops::block_cell

#endif  // TF_LSTM_OPS_DIALECTS_BLOCK_CELL_FORMS_H_
