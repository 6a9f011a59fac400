#include "dialects/keras/signatures.h"
#include "tf/op.h"

namespace tf_lstm_ops::keras {
namespace {

constexpr Extent kT = Extent::kTime, kB = Extent::kBatch, kI = Extent::kInput,
                 kH = Extent::kCell, k4H = Extent::kFourCell,
                 k3 = Extent::kThree, k4 = Extent::kFour,
                 kAny = Extent::kOpaque;
constexpr bool kOptional = true;

std::vector<const char*> Attributes() {
  return {"cell_clip: float = 0.0", "go_backwards: bool = false",
          "zero_output_for_mask: bool = false", "return_sequences: bool = true",
          "T: {half, bfloat16, float, double}"};
}

std::vector<Argument> Inputs() {
  return {{"x", {kB, kT, kI}},
          {"mask", {kB, kT}, "bool", kOptional},
          {"initial_h", {kB, kH}},
          {"initial_c", {kB, kH}},
          {"kernel", {kI, k4H}},
          {"recurrent_kernel", {kH, k4H}},
          {"bias", {k4H}, "T", kOptional},
          {"peephole", {k3, kH}, "T", kOptional},
          {"input_dropout", {k4, kB, kI}, "T", kOptional},
          {"recurrent_dropout", {k4, kB, kH}, "T", kOptional}};
}

}  // namespace

const Signature& KerasLSTM() {
  static const Signature signature = [] {
    Signature s = {"TfLstmOps>KerasLSTM",
                   Attributes(),
                   Inputs(),
                   {{"output", {kB, kAny, kH}},
                    {"final_h", {kB, kH}},
                    {"final_c", {kB, kH}},
                    {"reserve", {kAny}}}};
    s.attributes.push_back("training: bool = true");
    return s;
  }();
  return signature;
}

const Signature& KerasLSTMGrad() {
  static const Signature signature = [] {
    Signature s = {"TfLstmOps>KerasLSTMGrad",
                   Attributes(),
                   Inputs(),
                   {{"x_grad", {kB, kT, kI}},
                    {"initial_h_grad", {kB, kH}},
                    {"initial_c_grad", {kB, kH}},
                    {"kernel_grad", {kI, k4H}},
                    {"recurrent_kernel_grad", {kH, k4H}},
                    {"bias_grad", {k4H}, "T", kOptional},
                    {"peephole_grad", {k3, kH}, "T", kOptional}}};
    for (const Argument& argument :
         {Argument{"output", {kB, kAny, kH}}, Argument{"reserve", {kAny}},
          Argument{"output_grad", {kB, kAny, kH}},
          Argument{"final_h_grad", {kB, kH}},
          Argument{"final_c_grad", {kB, kH}}}) {
      s.inputs.push_back(argument);
    }
    return s;
  }();
  return signature;
}

namespace {

[[maybe_unused]] const bool kDefined[] = {tf::DefineOp<&KerasLSTM>(),
                                          tf::DefineOp<&KerasLSTMGrad>()};

}  // namespace
}  // namespace tf_lstm_ops::keras
