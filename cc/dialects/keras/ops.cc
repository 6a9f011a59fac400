#include <cstring>
#include <mutex>
#include <set>
#include <string_view>

#include "core/activation.h"
#include "dialects/keras/signatures.h"

namespace tf_lstm_ops::keras {
namespace {

using Arguments = std::vector<Argument>;
using Attributes = std::vector<const char*>;

constexpr Extent kT = Extent::kTime, kB = Extent::kBatch, kI = Extent::kInput,
                 kH = Extent::kCell, k4H = Extent::kFourCell,
                 k3H = Extent::kThreeCell, k2 = Extent::kTwo,
                 k3 = Extent::kThree, k4 = Extent::kFour, kP = Extent::kHidden,
                 kOne = Extent::kOne, kAny = Extent::kOpaque;

constexpr const char* kType = "T: {half, bfloat16, float, double}";
constexpr const char* kTraining = "training: bool = true";

// {'linear', 'relu', ...}; the type of an attribute may end with a comma.
#define TF_LSTM_OPS_QUOTED(name, text) "'" text "', "
#define TF_LSTM_OPS_KERAS_ACTIVATIONS \
  ": {" TF_LSTM_OPS_ACTIVATIONS(TF_LSTM_OPS_QUOTED) "} = "

constexpr const char* kActivation =
    "activation" TF_LSTM_OPS_KERAS_ACTIVATIONS "'tanh'";
constexpr const char* kRecurrentActivation =
    "recurrent_activation" TF_LSTM_OPS_KERAS_ACTIVATIONS "'sigmoid'";
constexpr const char* kEpsilon = "epsilon: float = 1e-5";

void Append(const Arguments& more, Arguments* arguments) {
  arguments->insert(arguments->end(), more.begin(), more.end());
}

// The op of a layer. `own` are its own attributes.
Signature LayerOp(const char* op, Arguments inputs, Arguments outputs,
                  const Attributes& own) {
  Attributes attributes = {"go_backwards: bool = false",
                           "zero_output_for_mask: bool = false",
                           "return_sequences: bool = true", kType};
  attributes.insert(attributes.end(), own.begin(), own.end());
  attributes.push_back(kTraining);
  return {op, std::move(attributes), std::move(inputs), std::move(outputs)};
}

// `hidden` is the extent of h.
Signature Lstm(const char* op, Extent hidden, const Arguments& behind_bias,
               const Attributes& own) {
  Arguments inputs = {{"x", {kB, kT, kI}},
                      {"mask", {kB, kT}, "bool", kOptional},
                      {"initial_h", {kB, hidden}},
                      {"initial_c", {kB, kH}},
                      {"kernel", {kI, k4H}},
                      {"recurrent_kernel", {hidden, k4H}},
                      {"bias", {k4H}, "T", kOptional}};
  Append(behind_bias, &inputs);
  Append({{"input_dropout", {k4, kB, kI}, "T", kOptional},
          {"recurrent_dropout", {k4, kB, hidden}, "T", kOptional}},
         &inputs);
  return LayerOp(op, std::move(inputs),
                 {{"output", {kB, kAny, hidden}},
                  {"final_h", {kB, hidden}},
                  {"final_c", {kB, kH}},
                  {"reserve", {kAny}}},
                 own);
}

Signature Gru(const char* op, const Dims& bias, const Arguments& behind_bias,
              const Attributes& own) {
  Arguments inputs = {{"x", {kB, kT, kI}},
                      {"mask", {kB, kT}, "bool", kOptional},
                      {"initial_h", {kB, kH}},
                      {"kernel", {kI, k3H}},
                      {"recurrent_kernel", {kH, k3H}},
                      {"bias", bias, "T", kOptional}};
  Append(behind_bias, &inputs);
  Append({{"input_dropout", {k3, kB, kI}, "T", kOptional},
          {"recurrent_dropout", {k3, kB, kH}, "T", kOptional}},
         &inputs);
  return LayerOp(
      op, std::move(inputs),
      {{"output", {kB, kAny, kH}}, {"final_h", {kB, kH}}, {"reserve", {kAny}}},
      own);
}

// A copy of a text that lives as long as the process. Thread-safe.
const char* Kept(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard<std::mutex> lock(mutex);
  return texts.insert(text).first->c_str();
}

Argument Like(const char* name, const char* input) {
  Argument argument = {name, {}};
  argument.like = input;
  return argument;
}

// The gradient with respect to an argument, which is absent where that is.
Argument GradArgument(const Argument& argument) {
  const char* name = Kept(std::string(argument.name) + "_grad");
  return argument.optional ? Like(name, argument.name)
                           : Argument{name, argument.dims};
}

// The final states of a layer or their gradients: of `arguments`, those whose
// names begin with final_.
Arguments FinalStates(const Arguments& arguments) {
  Arguments states;
  for (const Argument& argument : arguments) {
    if (std::strncmp(argument.name, "final_", 6) == 0) {
      states.push_back(argument);
    }
  }
  return states;
}

// The gradient op of a layer's op.
Signature GradOf(const Signature& layer) {
  Signature s = {Kept(std::string(layer.op) + "Grad"), {}, layer.inputs, {}};
  for (const char* attribute : layer.attributes) {
    if (attribute == kTraining) continue;
    s.attributes.push_back(attribute);
    if (attribute == kType) s.attributes.push_back("needs_x_grad: bool = true");
  }
  const Argument& output = layer.outputs.front();
  Append({output, layer.outputs.back(), GradArgument(output)}, &s.inputs);
  for (const Argument& state : FinalStates(layer.outputs)) {
    s.inputs.push_back(GradArgument(state));
  }
  for (const Argument& input : layer.inputs) {
    const std::string_view name = input.name;
    if (name == "mask" || name == "input_dropout" ||
        name == "recurrent_dropout") {
      continue;
    }
    s.outputs.push_back(GradArgument(input));
  }
  return s;
}

const char* BidirectionalName(const char* op) {
  constexpr std::string_view kPrefix = "TfLstmOps>Keras";
  return Kept(std::string(kPrefix) + "Bidirectional" + (op + kPrefix.size()));
}

// An argument of the second layer.
Argument OfBackward(Argument argument) {
  argument.name = Kept(BackwardName(argument.name));
  if (argument.like) argument.like = Kept(BackwardName(argument.like));
  return argument;
}

// Attributes without go_backwards, by the definitions of some.
Attributes WithoutDirection(const Attributes& attributes) {
  Attributes others;
  for (const char* attribute : attributes) {
    if (std::strncmp(attribute, "go_backwards", 12) != 0) {
      others.push_back(attribute);
    }
  }
  return others;
}

// The output of two layers by that of one, [B,.,P] or [B,.,H].
Argument OfBoth(const char* name, const Argument& output) {
  const bool projects = output.dims.extents[2] == kP;
  return {name, {kB, kAny, projects ? Extent::kTwoHidden : Extent::kTwoCell}};
}

void AppendOfBackward(const Arguments& more, Arguments* arguments) {
  for (const Argument& argument : more) {
    arguments->push_back(OfBackward(argument));
  }
}

}  // namespace

std::string BackwardName(const std::string& name) {
  return kBackwardPrefix + name;
}

Signature MakeBidirectional(const Signature& layer) {
  const Arguments states = FinalStates(layer.outputs);
  Arguments inputs = layer.inputs,
            outputs = {OfBoth("output", layer.outputs[0])};
  for (Argument input : layer.inputs) {
    const std::string_view name = input.name;
    if (name == "mask") continue;
    input.optional |= name == "x";
    inputs.push_back(OfBackward(input));
  }
  Append(states, &outputs);
  AppendOfBackward(states, &outputs);
  outputs.push_back({"reserve", {kAny}});
  return {BidirectionalName(layer.op), WithoutDirection(layer.attributes),
          std::move(inputs), std::move(outputs)};
}

Signature MakeBidirectionalGrad(const Signature& layer, const Signature& grad) {
  const Arguments grads = FinalStates(grad.inputs);
  Arguments inputs = MakeBidirectional(layer).inputs;
  Append({OfBoth("output", layer.outputs[0]),
          {"reserve", {kAny}},
          OfBoth("output_grad", layer.outputs[0])},
         &inputs);
  Append(grads, &inputs);
  AppendOfBackward(grads, &inputs);
  Arguments outputs = grad.outputs, of_backward = grad.outputs;
  of_backward.front() = Like("x_grad", "x");
  AppendOfBackward(of_backward, &outputs);
  return {BidirectionalName(grad.op), WithoutDirection(grad.attributes),
          std::move(inputs), std::move(outputs)};
}

const Signature& KerasLSTM() {
  static const Signature signature =
      Lstm("TfLstmOps>KerasLSTM", kP,
           {{"peephole", {k3, kH}, "T", kOptional},
            {"projection", {kH, kP}, "T", kOptional}},
           {"cell_clip: float = 0.0", "proj_clip: float = 0.0", kActivation,
            kRecurrentActivation});
  return signature;
}

const Signature& KerasLSTMGrad() {
  static const Signature signature = GradOf(KerasLSTM());
  return signature;
}

const Signature& KerasLayerNormLSTM() {
  static const Signature signature =
      Lstm("TfLstmOps>KerasLayerNormLSTM", kH,
           {{"input_gamma", {k4H}},
            {"recurrent_gamma", {k4H}},
            {"state_gamma", {kH}},
            {"state_beta", {kH}}},
           {kEpsilon, "carries_normalized_state: bool = false"});
  return signature;
}

const Signature& KerasLayerNormLSTMGrad() {
  static const Signature signature = GradOf(KerasLayerNormLSTM());
  return signature;
}

const Signature& KerasGRU() {
  static const Signature signature = Gru("TfLstmOps>KerasGRU", {k2, k3H}, {},
                                         {kActivation, kRecurrentActivation});
  return signature;
}

const Signature& KerasGRUGrad() {
  static const Signature signature = GradOf(KerasGRU());
  return signature;
}

const Signature& KerasResetBeforeGRU() {
  static const Signature signature =
      Gru("TfLstmOps>KerasResetBeforeGRU", {k3H}, {},
          {kActivation, kRecurrentActivation});
  return signature;
}

const Signature& KerasResetBeforeGRUGrad() {
  static const Signature signature = GradOf(KerasResetBeforeGRU());
  return signature;
}

const Signature& KerasSimpleRNN() {
  static const Signature signature = LayerOp(
      "TfLstmOps>KerasSimpleRNN",
      {{"x", {kB, kT, kI}},
       {"mask", {kB, kT}, "bool", kOptional},
       {"initial_h", {kB, kH}},
       {"kernel", {kI, kH}},
       {"recurrent_kernel", {kH, kH}},
       {"bias", {kH}, "T", kOptional},
       {"input_dropout", {kOne, kB, kI}, "T", kOptional},
       {"recurrent_dropout", {kOne, kB, kH}, "T", kOptional}},
      {{"output", {kB, kAny, kH}}, {"final_h", {kB, kH}}, {"reserve", {kAny}}},
      {"activation: {'tanh', 'relu'} = 'tanh'"});
  return signature;
}

const Signature& KerasSimpleRNNGrad() {
  static const Signature signature = GradOf(KerasSimpleRNN());
  return signature;
}

const Signature& KerasLayerNormGRU() {
  static const Signature signature =
      Gru("TfLstmOps>KerasLayerNormGRU", {k2, k3H},
          {{"input_gamma", {k3H}}, {"recurrent_gamma", {k3H}}}, {kEpsilon});
  return signature;
}

const Signature& KerasLayerNormGRUGrad() {
  static const Signature signature = GradOf(KerasLayerNormGRU());
  return signature;
}

}  // namespace tf_lstm_ops::keras
