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

}  // namespace

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
