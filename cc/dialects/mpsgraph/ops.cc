#include "dialects/mpsgraph/signatures.h"

namespace tf_lstm_ops::mpsgraph {
namespace {

using Arguments = std::vector<Argument>;

constexpr Extent kT = Extent::kTime, kN = Extent::kBatch,
                 kAny = Extent::kOpaque;

// The kernels check ranks that depend on the attribute `bidirectional`, because
// shape functions of the C API cannot read attributes.
Argument Optional(const char* name, Dims dims) {
  return {name, dims, "T", kOptional};
}

Argument Like(const char* name, const char* input) {
  Argument argument = {name, Dims::OfAnyRank()};
  argument.like = input;
  return argument;
}

std::vector<const char*> DescriptorAttributes() {
#define TF_LSTM_OPS_ACTIVATION(name, value) \
  name ": {'none', 'relu', 'tanh', 'sigmoid', 'hard_sigmoid'} = '" value "'"
  return {"reverse: bool = false",
          "bidirectional: bool = false",
          "forget_gate_last: bool = false",
          TF_LSTM_OPS_ACTIVATION("input_gate_activation", "sigmoid"),
          TF_LSTM_OPS_ACTIVATION("forget_gate_activation", "sigmoid"),
          TF_LSTM_OPS_ACTIVATION("cell_gate_activation", "tanh"),
          TF_LSTM_OPS_ACTIVATION("output_gate_activation", "sigmoid"),
          TF_LSTM_OPS_ACTIVATION("activation", "tanh"),
          "T: {half, bfloat16, float, double}"};
#undef TF_LSTM_OPS_ACTIVATION
}

Arguments OptionalInputs() {
  return {Optional("input_weight", {kAny, kAny}),
          Optional("bias", {kAny}),
          Optional("init_state", {kN, kAny}),
          Optional("init_cell", {kN, kAny}),
          Optional("mask", Dims::OfAnyRank()),
          Optional("peephole", Dims::OfAnyRank())};
}

void Append(const Arguments& more, Arguments* arguments) {
  arguments->insert(arguments->end(), more.begin(), more.end());
}

}  // namespace

const Signature& MPSGraphLSTM() {
  static const Signature signature = [] {
    Signature s = {
        "TfLstmOps>MPSGraphLSTM",
        DescriptorAttributes(),
        {{"source", {kT, kN, kAny}}, {"recurrent_weight", Dims::OfAnyRank()}},
        {{"output", {kT, kN, kAny}},
         {"cell", Dims::OfAnyRank()},
         {"z_state", Dims::OfAnyRank()}}};
    s.attributes.push_back("produce_cell: bool = false");
    s.attributes.push_back("training: bool = false");
    Append(OptionalInputs(), &s.inputs);
    return s;
  }();
  return signature;
}

const Signature& MPSGraphLSTMGradients() {
  static const Signature signature = [] {
    const Dims steps = {kT, kN, kAny};
    Signature s = {
        "TfLstmOps>MPSGraphLSTMGradients",
        DescriptorAttributes(),
        {{"source", steps},
         {"recurrent_weight", Dims::OfAnyRank()},
         {"source_gradient", steps},
         {"z_state", steps},
         {"cell_output_fwd", steps}},
        {Like("source_grad", "source"),
         Like("recurrent_weight_grad", "recurrent_weight"),
         Like("input_weight_grad", "input_weight"), Like("bias_grad", "bias"),
         Like("peephole_grad", "peephole"),
         Like("init_state_grad", "init_state"),
         Like("init_cell_grad", "init_cell")}};
    Append(OptionalInputs(), &s.inputs);
    Append({Optional("state_gradient", Dims::OfAnyRank()),
            Optional("cell_gradient", Dims::OfAnyRank()),
            Optional("cell_output_gradient", steps),
            Optional("z_state_gradient", steps)},
           &s.inputs);
    return s;
  }();
  return signature;
}

}  // namespace tf_lstm_ops::mpsgraph
