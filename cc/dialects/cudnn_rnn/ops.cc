#include <cstring>
#include <utility>

#include "dialects/cudnn_rnn/signatures.h"

namespace tf_lstm_ops::cudnn_rnn {
namespace {

using Arguments = std::vector<Argument>;
using Attributes = std::vector<const char*>;

constexpr char kNamespace[] = "TfLstmOps>";
constexpr Extent kAny = Extent::kOpaque;

constexpr char kInputMode[] =
    "input_mode: {'linear_input', 'skip_input', 'auto_select'} = "
    "'linear_input'";

Attributes ModelAttributes() {
  return {"T: {bfloat16, half, float, double}",
          "rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm'",
          kInputMode,
          "direction: {'unidirectional', 'bidirectional'} = 'unidirectional'",
          "dropout: float = 0.0",
          "seed: int = 0",
          "seed2: int = 0"};
}

Attributes With(Attributes attributes,
                std::initializer_list<const char*> more) {
  attributes.insert(attributes.end(), more);
  return attributes;
}

constexpr char kNumProj[] = "num_proj: int = 0";
constexpr char kTimeMajor[] = "time_major: bool = true";
constexpr char kIsTraining[] = "is_training: bool = true";

Argument Sequence(const char* name) { return {name, {kAny, kAny, kAny}}; }
// A cell state. Unless the model is an LSTM, any shape is allowed.
Argument Cell(const char* name) { return {name, Dims::OfAnyRank()}; }
Argument Like(const char* name, const char* input) {
  Argument argument = {name, Dims::OfAnyRank()};
  argument.like = input;
  return argument;
}
// These are functions, because another file's static registration may use them
// before constants of this file are initialised.
Argument Reserve() { return {"reserve_space", {kAny}}; }
Argument HostReserved() { return {"host_reserved", Dims::OfAnyRank(), "int8"}; }

Arguments Inputs(int version) {
  Arguments inputs = {Sequence("input"),
                      Sequence("input_h"),
                      Cell("input_c"),
                      {"params", {kAny}}};
  if (version == 3) inputs.push_back({"sequence_lengths", {kAny}, "int32"});
  return inputs;
}

Signature Forward(const char* op, int version) {
  Signature s = {op,
                 With(ModelAttributes(), {kIsTraining}),
                 Inputs(version),
                 {Sequence("output"),
                  Like("output_h", "input_h"),
                  Cell("output_c"),
                  {"reserve_space", Dims::OfAnyRank()}}};
  if (version == 3) s.attributes = With(s.attributes, {kNumProj, kTimeMajor});
  if (version > 1) s.outputs.push_back(HostReserved());
  s.stateful = true;
  return s;
}

Signature Backward(const char* op, int version) {
  Signature s = {
      op,
      ModelAttributes(),
      Inputs(version),
      {Like("input_backprop", "input"), Like("input_h_backprop", "input_h"),
       Like("input_c_backprop", "input_c"), Like("params_backprop", "params")}};
  if (version == 3) s.attributes = With(s.attributes, {kNumProj, kTimeMajor});
  for (const Argument& argument :
       {Sequence("output"), Sequence("output_h"), Cell("output_c"),
        Sequence("output_backprop"), Sequence("output_h_backprop"),
        Cell("output_c_backprop"), Reserve()}) {
    s.inputs.push_back(argument);
  }
  if (version > 1) s.inputs.push_back(HostReserved());
  s.stateful = true;
  return s;
}

Arguments ModelScalars() {
  return {{"num_layers", {}, "int32"},
          {"num_units", {}, "int32"},
          {"input_size", {}, "int32"}};
}

Signature ToParams(const char* op, bool v2) {
  Signature s = {op, ModelAttributes(), ModelScalars(), {{"params", {kAny}}}};
  s.attributes =
      v2 ? With(s.attributes, {"num_params_weights: int >= 1",
                               "num_params_biases: int >= 1", kNumProj})
         : With(s.attributes, {"num_params: int >= 1"});
  s.input_lists = {
      v2 ? "weights: num_params_weights * T" : "weights: num_params * T",
      v2 ? "biases: num_params_biases * T" : "biases: num_params * T"};
  return s;
}

Signature FromParams(const char* op, bool v2) {
  Signature s = ToParams(op, v2);
  s.inputs.push_back({"params", {kAny}});
  s.outputs.clear();
  std::swap(s.input_lists, s.output_lists);
  return s;
}

}  // namespace

const Signature& CudnnRNN() {
  static const Signature s = Forward("TfLstmOps>CudnnRNN", 1);
  return s;
}
const Signature& CudnnRNNV2() {
  static const Signature s = Forward("TfLstmOps>CudnnRNNV2", 2);
  return s;
}
const Signature& CudnnRNNV3() {
  static const Signature s = Forward("TfLstmOps>CudnnRNNV3", 3);
  return s;
}
const Signature& CudnnRNNBackprop() {
  static const Signature s = Backward("TfLstmOps>CudnnRNNBackprop", 1);
  return s;
}
const Signature& CudnnRNNBackpropV2() {
  static const Signature s = Backward("TfLstmOps>CudnnRNNBackpropV2", 2);
  return s;
}
const Signature& CudnnRNNBackpropV3() {
  static const Signature s = Backward("TfLstmOps>CudnnRNNBackpropV3", 3);
  return s;
}
const Signature& CudnnRNNParamsSize() {
  static const Signature s = {
      "TfLstmOps>CudnnRNNParamsSize",
      With(ModelAttributes(), {"S: {int32, int64}", kNumProj}),
      ModelScalars(),
      {{"params_size", {Extent::kOne}, "S"}}};
  return s;
}
const Signature& CudnnRNNCanonicalToParams() {
  static const Signature s =
      ToParams("TfLstmOps>CudnnRNNCanonicalToParams", false);
  return s;
}
const Signature& CudnnRNNCanonicalToParamsV2() {
  static const Signature s =
      ToParams("TfLstmOps>CudnnRNNCanonicalToParamsV2", true);
  return s;
}
const Signature& CudnnRNNParamsToCanonical() {
  static const Signature s =
      FromParams("TfLstmOps>CudnnRNNParamsToCanonical", false);
  return s;
}
const Signature& CudnnRNNParamsToCanonicalV2() {
  static const Signature s =
      FromParams("TfLstmOps>CudnnRNNParamsToCanonicalV2", true);
  return s;
}
const Signature& CudnnRNNDropoutMask() {
  static const Signature s = {"TfLstmOps>CudnnRNNDropoutMask",
                              {"T: {bfloat16, half, float, double}"},
                              {Reserve()},
                              {{"mask", Dims::OfAnyRank()}}};
  return s;
}

const char* StockName(const Signature& signature) {
  return signature.op + std::strlen(kNamespace);
}

}  // namespace tf_lstm_ops::cudnn_rnn
