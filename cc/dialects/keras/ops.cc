#include <cstring>
#include <mutex>
#include <set>
#include <string_view>

#include "core/activation.h"
#include "dialects/keras/signatures.h"

namespace tf_lstm_ops::keras {
namespace {

using Arguments = std::vector<Argument>;

constexpr Extent kT = Extent::kTime, kB = Extent::kBatch, kI = Extent::kInput,
                 kH = Extent::kCell, k4H = Extent::kFourCell,
                 k3H = Extent::kThreeCell, k2 = Extent::kTwo,
                 k3 = Extent::kThree, k4 = Extent::kFour, kP = Extent::kHidden,
                 kAny = Extent::kOpaque;

Signature Base(const char* op, Arguments inputs, Arguments outputs) {
  return {
      op,
      {"go_backwards: bool = false", "zero_output_for_mask: bool = false",
       "return_sequences: bool = true", "T: {half, bfloat16, float, double}"},
      std::move(inputs),
      std::move(outputs)};
}

// The inputs that every gradient op has besides those of its forward op.
Signature GradOf(const Signature& forward, const char* op, Extent hidden = kH) {
  Signature s = Base(op, forward.inputs, {});
  s.attributes.push_back("needs_x_grad: bool = true");
  s.inputs.push_back({"output", {kB, kAny, hidden}});
  s.inputs.push_back({"reserve", {kAny}});
  s.inputs.push_back({"output_grad", {kB, kAny, hidden}});
  return s;
}

Argument Like(const char* name, const char* input) {
  Argument argument = {name, {}};
  argument.like = input;
  return argument;
}

// {'linear', 'relu', ...}; the type of an attribute may end with a comma.
#define TF_LSTM_OPS_QUOTED(name, text) "'" text "', "
#define TF_LSTM_OPS_KERAS_ACTIVATIONS \
  ": {" TF_LSTM_OPS_ACTIVATIONS(TF_LSTM_OPS_QUOTED) "} = "

void AddLstmAttributes(Signature* s) {
  s->attributes.push_back("cell_clip: float = 0.0");
  s->attributes.push_back("activation" TF_LSTM_OPS_KERAS_ACTIVATIONS "'tanh'");
  s->attributes.push_back("recurrent_activation" TF_LSTM_OPS_KERAS_ACTIVATIONS
                          "'sigmoid'");
}

void AddLayerNormAttributes(Signature* s, bool is_lstm) {
  s->attributes.push_back("epsilon: float = 1e-5");
  if (is_lstm) {
    s->attributes.push_back("carries_normalized_state: bool = false");
  }
}

Arguments LstmInputs() {
  return {{"x", {kB, kT, kI}},
          {"mask", {kB, kT}, "bool", kOptional},
          {"initial_h", {kB, kP}},
          {"initial_c", {kB, kH}},
          {"kernel", {kI, k4H}},
          {"recurrent_kernel", {kP, k4H}},
          {"bias", {k4H}, "T", kOptional},
          {"peephole", {k3, kH}, "T", kOptional},
          {"projection", {kH, kP}, "T", kOptional},
          {"input_dropout", {k4, kB, kI}, "T", kOptional},
          {"recurrent_dropout", {k4, kB, kP}, "T", kOptional}};
}

Arguments GruInputs(const Dims& bias) {
  return {{"x", {kB, kT, kI}},
          {"mask", {kB, kT}, "bool", kOptional},
          {"initial_h", {kB, kH}},
          {"kernel", {kI, k3H}},
          {"recurrent_kernel", {kH, k3H}},
          {"bias", bias, "T", kOptional},
          {"input_dropout", {k3, kB, kI}, "T", kOptional},
          {"recurrent_dropout", {k3, kB, kH}, "T", kOptional}};
}

Signature Gru(const char* op, const Dims& bias) {
  Signature s = Base(
      op, GruInputs(bias),
      {{"output", {kB, kAny, kH}}, {"final_h", {kB, kH}}, {"reserve", {kAny}}});
  s.attributes.push_back("training: bool = true");
  return s;
}

Signature GruGrad(const Signature& forward, const char* op) {
  Signature s = GradOf(forward, op);
  s.inputs.push_back({"final_h_grad", {kB, kH}});
  s.outputs = {{"x_grad", {kB, kT, kI}},
               {"initial_h_grad", {kB, kH}},
               {"kernel_grad", {kI, k3H}},
               {"recurrent_kernel_grad", {kH, k3H}},
               Like("bias_grad", "bias")};
  return s;
}

// A copy of a text that lives as long as the process. Thread-safe.
const char* Kept(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard<std::mutex> lock(mutex);
  return texts.insert(text).first->c_str();
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
std::vector<const char*> WithoutDirection(
    const std::vector<const char*>& attributes) {
  std::vector<const char*> others;
  for (const char* attribute : attributes) {
    if (std::strncmp(attribute, "go_backwards", 12) != 0) {
      others.push_back(attribute);
    }
  }
  return others;
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

// The output of two layers by that of one, [B,.,P] or [B,.,H].
Argument OfBoth(const char* name, const Argument& output) {
  const bool projects = output.dims.extents[2] == kP;
  return {name, {kB, kAny, projects ? Extent::kTwoHidden : Extent::kTwoCell}};
}

void Append(const Arguments& more, Arguments* arguments) {
  arguments->insert(arguments->end(), more.begin(), more.end());
}
void AppendOfBackward(const Arguments& more, Arguments* arguments) {
  for (const Argument& argument : more) {
    arguments->push_back(OfBackward(argument));
  }
}

}  // namespace

std::string BackwardName(const std::string& name) { return "backward_" + name; }

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
  static const Signature signature = [] {
    Signature s = Base("TfLstmOps>KerasLSTM", LstmInputs(),
                       {{"output", {kB, kAny, kP}},
                        {"final_h", {kB, kP}},
                        {"final_c", {kB, kH}},
                        {"reserve", {kAny}}});
    AddLstmAttributes(&s);
    s.attributes.push_back("training: bool = true");
    return s;
  }();
  return signature;
}

const Signature& KerasLSTMGrad() {
  static const Signature signature = [] {
    Signature s = GradOf(KerasLSTM(), "TfLstmOps>KerasLSTMGrad", kP);
    AddLstmAttributes(&s);
    s.inputs.push_back({"final_h_grad", {kB, kP}});
    s.inputs.push_back({"final_c_grad", {kB, kH}});
    s.outputs = {{"x_grad", {kB, kT, kI}},
                 {"initial_h_grad", {kB, kP}},
                 {"initial_c_grad", {kB, kH}},
                 {"kernel_grad", {kI, k4H}},
                 {"recurrent_kernel_grad", {kP, k4H}},
                 Like("bias_grad", "bias"),
                 Like("peephole_grad", "peephole"),
                 Like("projection_grad", "projection")};
    return s;
  }();
  return signature;
}

const Signature& KerasLayerNormLSTM() {
  static const Signature signature = [] {
    Arguments inputs = {{"x", {kB, kT, kI}},
                        {"mask", {kB, kT}, "bool", kOptional},
                        {"initial_h", {kB, kH}},
                        {"initial_c", {kB, kH}},
                        {"kernel", {kI, k4H}},
                        {"recurrent_kernel", {kH, k4H}},
                        {"bias", {k4H}, "T", kOptional},
                        {"input_gamma", {k4H}},
                        {"recurrent_gamma", {k4H}},
                        {"state_gamma", {kH}},
                        {"state_beta", {kH}},
                        {"input_dropout", {k4, kB, kI}, "T", kOptional},
                        {"recurrent_dropout", {k4, kB, kH}, "T", kOptional}};
    Signature s = Base("TfLstmOps>KerasLayerNormLSTM", std::move(inputs),
                       {{"output", {kB, kAny, kH}},
                        {"final_h", {kB, kH}},
                        {"final_c", {kB, kH}},
                        {"reserve", {kAny}}});
    AddLayerNormAttributes(&s, /*is_lstm=*/true);
    s.attributes.push_back("training: bool = true");
    return s;
  }();
  return signature;
}

const Signature& KerasLayerNormLSTMGrad() {
  static const Signature signature = [] {
    Signature s =
        GradOf(KerasLayerNormLSTM(), "TfLstmOps>KerasLayerNormLSTMGrad");
    AddLayerNormAttributes(&s, /*is_lstm=*/true);
    s.inputs.push_back({"final_h_grad", {kB, kH}});
    s.inputs.push_back({"final_c_grad", {kB, kH}});
    s.outputs = {{"x_grad", {kB, kT, kI}},
                 {"initial_h_grad", {kB, kH}},
                 {"initial_c_grad", {kB, kH}},
                 {"kernel_grad", {kI, k4H}},
                 {"recurrent_kernel_grad", {kH, k4H}},
                 Like("bias_grad", "bias"),
                 {"input_gamma_grad", {k4H}},
                 {"recurrent_gamma_grad", {k4H}},
                 {"state_gamma_grad", {kH}},
                 {"state_beta_grad", {kH}}};
    return s;
  }();
  return signature;
}

const Signature& KerasGRU() {
  static const Signature signature = Gru("TfLstmOps>KerasGRU", {k2, k3H});
  return signature;
}

const Signature& KerasGRUGrad() {
  static const Signature signature =
      GruGrad(KerasGRU(), "TfLstmOps>KerasGRUGrad");
  return signature;
}

const Signature& KerasResetBeforeGRU() {
  static const Signature signature =
      Gru("TfLstmOps>KerasResetBeforeGRU", {k3H});
  return signature;
}

const Signature& KerasResetBeforeGRUGrad() {
  static const Signature signature =
      GruGrad(KerasResetBeforeGRU(), "TfLstmOps>KerasResetBeforeGRUGrad");
  return signature;
}

const Signature& KerasLayerNormGRU() {
  static const Signature signature = [] {
    Arguments inputs = {{"x", {kB, kT, kI}},
                        {"mask", {kB, kT}, "bool", kOptional},
                        {"initial_h", {kB, kH}},
                        {"kernel", {kI, k3H}},
                        {"recurrent_kernel", {kH, k3H}},
                        {"bias", {k2, k3H}, "T", kOptional},
                        {"input_gamma", {k3H}},
                        {"recurrent_gamma", {k3H}},
                        {"input_dropout", {k3, kB, kI}, "T", kOptional},
                        {"recurrent_dropout", {k3, kB, kH}, "T", kOptional}};
    Signature s = Base("TfLstmOps>KerasLayerNormGRU", std::move(inputs),
                       {{"output", {kB, kAny, kH}},
                        {"final_h", {kB, kH}},
                        {"reserve", {kAny}}});
    AddLayerNormAttributes(&s, /*is_lstm=*/false);
    s.attributes.push_back("training: bool = true");
    return s;
  }();
  return signature;
}

const Signature& KerasLayerNormGRUGrad() {
  static const Signature signature = [] {
    Signature s =
        GradOf(KerasLayerNormGRU(), "TfLstmOps>KerasLayerNormGRUGrad");
    AddLayerNormAttributes(&s, /*is_lstm=*/false);
    s.inputs.push_back({"final_h_grad", {kB, kH}});
    s.outputs = {
        {"x_grad", {kB, kT, kI}},       {"initial_h_grad", {kB, kH}},
        {"kernel_grad", {kI, k3H}},     {"recurrent_kernel_grad", {kH, k3H}},
        Like("bias_grad", "bias"),      {"input_gamma_grad", {k3H}},
        {"recurrent_gamma_grad", {k3H}}};
    return s;
  }();
  return signature;
}

}  // namespace tf_lstm_ops::keras
