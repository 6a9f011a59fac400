#include <initializer_list>

#include "dialects/block_cell/signatures.h"

namespace tf_lstm_ops::block_cell {
namespace {

using Arguments = std::vector<Argument>;

constexpr Extent kT = Extent::kTime, kB = Extent::kBatch, kI = Extent::kInput,
                 kH = Extent::kCell, k4H = Extent::kFourCell,
                 kIH = Extent::kInputPlusCell;

Arguments Concat(std::initializer_list<Arguments> parts) {
  Arguments all;
  for (const Arguments& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Whether an op takes one step or a sequence, [B,.] or [T,B,.].
enum Span { kStep, kSequence };

Argument Rows(Span span, const char* name, Extent width) {
  return span == kStep ? Argument{name, {kB, width}}
                       : Argument{name, {kT, kB, width}};
}

Arguments Inputs(Span span) {
  Arguments inputs = {Rows(span, "x", kI),  {"cs_prev", {kB, kH}},
                      {"h_prev", {kB, kH}}, {"w", {kIH, k4H}},
                      {"wci", {kH}},        {"wcf", {kH}},
                      {"wco", {kH}},        {"b", {k4H}}};
  if (span == kSequence) {
    inputs.insert(inputs.begin(), Argument{"seq_len_max", Dims(), "int64"});
  }
  return inputs;
}

// One [.,H] argument for each name.
Arguments CellRows(Span span, std::initializer_list<const char*> names) {
  Arguments rows;
  for (const char* name : names) rows.push_back(Rows(span, name, kH));
  return rows;
}

Arguments Outputs(Span span) {
  return CellRows(span, {"i", "cs", "f", "o", "ci", "co", "h"});
}

// Gradients of all inputs but seq_len_max.
Arguments InputGradients(Span span) {
  return {Rows(span, "x_grad", kI),  {"cs_prev_grad", {kB, kH}},
          {"h_prev_grad", {kB, kH}}, {"w_grad", {kIH, k4H}},
          {"wci_grad", {kH}},        {"wcf_grad", {kH}},
          {"wco_grad", {kH}},        {"b_grad", {k4H}}};
}

constexpr const char* kTypes = "T: {half, bfloat16, float, double}";
constexpr const char* kForgetBias = "forget_bias: float = 1.0";
constexpr const char* kUsePeephole = "use_peephole: bool = false";
constexpr const char* kPeepholeRequired = "use_peephole: bool";
constexpr const char* kGateOrder = "gate_order: {'ICFO', 'IFCO'} = 'ICFO'";

// Sets the positions of the inputs by InputNumber.
Signature Numbered(Signature signature) {
  for (const char* name :
       {"seq_len_max", "x",      "cs_prev", "h_prev",  "w",      "wci",
        "wcf",         "wco",    "b",       "i",       "cs",     "f",
        "o",           "ci",     "co",      "h",       "i_grad", "cs_grad",
        "f_grad",      "o_grad", "ci_grad", "co_grad", "h_grad"}) {
    signature.positions.push_back(signature.InputIndex(name));
  }
  return signature;
}

Signature SequenceGrad(const char* op) {
  return Numbered({op,
                   {kPeepholeRequired, kTypes},
                   Concat({Inputs(kSequence), Outputs(kSequence),
                           CellRows(kSequence, {"cs_grad", "h_grad"})}),
                   InputGradients(kSequence)});
}

Signature FullGrad(const char* op, Span span) {
  return Numbered(
      {op,
       {kPeepholeRequired, kGateOrder, kTypes},
       Concat({Inputs(span), Outputs(span),
               CellRows(span, {"i_grad", "cs_grad", "f_grad", "o_grad",
                               "ci_grad", "co_grad", "h_grad"})}),
       InputGradients(span)});
}

}  // namespace

const Signature& LSTMBlockCell() {
  static const Signature signature =
      Numbered({"TfLstmOps>LSTMBlockCell",
                {kForgetBias, "cell_clip: float = 3.0", kUsePeephole, kTypes},
                Inputs(kStep),
                Outputs(kStep)});
  return signature;
}

const Signature& LSTMBlockCellGrad() {
  static const Signature signature = Numbered(
      {"TfLstmOps>LSTMBlockCellGrad",
       {kPeepholeRequired, kTypes},
       Concat({Inputs(kStep), CellRows(kStep, {"i", "cs", "f", "o", "ci", "co",
                                               "cs_grad", "h_grad"})}),
       {{"cs_prev_grad", {kB, kH}},
        {"dicfo", {kB, k4H}},
        {"wci_grad", {kH}},
        {"wcf_grad", {kH}},
        {"wco_grad", {kH}}}});
  return signature;
}

const Signature& LSTMBlockCellFullGrad() {
  static const Signature signature =
      FullGrad("TfLstmOps>LSTMBlockCellFullGrad", kStep);
  return signature;
}

const Signature& BlockLSTM() {
  static const Signature signature =
      Numbered({"TfLstmOps>BlockLSTM",
                {kForgetBias, "cell_clip: float = 3.0", kUsePeephole, kTypes},
                Inputs(kSequence),
                Outputs(kSequence)});
  return signature;
}

const Signature& BlockLSTMGrad() {
  static const Signature signature = SequenceGrad("TfLstmOps>BlockLSTMGrad");
  return signature;
}

const Signature& BlockLSTMV2() {
  static const Signature signature =
      Numbered({"TfLstmOps>BlockLSTMV2",
                {"cell_clip: float = 0.0", kUsePeephole, kTypes},
                Inputs(kSequence),
                Outputs(kSequence)});
  return signature;
}

const Signature& BlockLSTMGradV2() {
  static const Signature signature = SequenceGrad("TfLstmOps>BlockLSTMGradV2");
  return signature;
}

const Signature& BlockLSTMFullGrad() {
  static const Signature signature =
      FullGrad("TfLstmOps>BlockLSTMFullGrad", kSequence);
  return signature;
}

}  // namespace tf_lstm_ops::block_cell
