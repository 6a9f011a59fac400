#include "training/layer.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "dialects/keras/passes_cpu.h"

namespace tf_lstm_ops::training {
namespace {

using keras::OpVariant;

template <class P, class Interface>
class PassOf : public Interface {
 public:
  const Signature& signature() const override { return P::kSignature(); }
  Status Init(const AttributeReader& reader) override {
    return pass_.Init(reader);
  }
  Status Compute(const Arrays& arrays, int threads) override {
    return pass_.Compute(arrays, threads);
  }

 protected:
  P pass_;
};

template <class P>
class ForwardOf : public PassOf<P, Forward> {
  Status Infer(const Arrays& arrays,
               std::vector<Shape>* shapes) const override {
    return this->pass_.Infer(arrays, shapes);
  }
};

// An option as an attribute of an op.
struct Option {
  const char* name;
  bool is_given;  // differs from the default
  bool flag = false;
  float number = 0;
  const char* text = nullptr;  // of an option that is a name
};

Option Flag(const char* name, int32_t value) {
  return {name, value != 0, value != 0};
}

Option Number(const char* name, float value, float otherwise) {
  return {name, value != 0, false, value != 0 ? value : otherwise};
}

Option Text(const char* name, const char* value, const char* otherwise) {
  return {name, value != nullptr, false, 0, value ? value : otherwise};
}

// What the text "name: type = default" of a signature says of an attribute;
// empty if the op does not have it.
std::string_view Declaration(const Signature& signature,
                             const std::string& name) {
  for (const std::string_view attribute : signature.attributes) {
    if (attribute.substr(0, name.size() + 1) == name + ":") return attribute;
  }
  return {};
}

// Whether a name is one of {'linear', 'relu', ...}.
bool IsDeclared(const std::string& name, std::string_view declared) {
  return name.find('\'') == std::string::npos &&
         declared.find("'" + name + "'") < declared.find('}');
}

// The options as attributes, with the defaults of the ops.
std::vector<Option> AttributesOf(const tf_lstm_ops_layer_options& from) {
  constexpr float kEpsilon = 1e-5F;
  return {Flag("go_backwards", from.go_backwards),
          Flag("zero_output_for_mask", from.zero_output_for_mask),
          Flag("carries_normalized_state", from.carries_normalized_state),
          Number("cell_clip", from.cell_clip, 0),
          Number("proj_clip", from.proj_clip, 0),
          Number("epsilon", from.epsilon, kEpsilon),
          Text("activation", from.activation, "tanh"),
          Text("recurrent_activation", from.recurrent_activation, "sigmoid"),
          // Not of a cell, and all ops have them.
          {"return_sequences", false, from.returns_last_step == 0},
          {"training", false, from.saves_nothing == 0},
          {"needs_x_grad", false, true}};
}

class Options : public AttributeReader {
 public:
  explicit Options(const tf_lstm_ops_layer_options& from)
      : all_(AttributesOf(from)) {}

  // Checks that an op has the options that are given, and these values.
  Status Check(const Signature& signature) const {
    for (const Option& option : all_) {
      if (!option.is_given) continue;
      const std::string_view declared = Declaration(signature, option.name);
      if (declared.empty()) {
        return InvalidArgument("the cell has no option ", option.name);
      }
      if (!std::isfinite(option.number) || option.number < 0) {
        return InvalidArgument(option.name, " is ", option.number,
                               ", must be finite and not negative");
      }
      if (option.text && !IsDeclared(option.text, declared)) {
        return InvalidArgument(option.name, " is '", option.text,
                               "', must be one of ",
                               declared.substr(declared.find('{')));
      }
    }
    return Status();
  }

  Status GetAttr(const char* name, bool* value) const override {
    return Read(name, &Option::flag, value);
  }
  Status GetAttr(const char* name, float* value) const override {
    return Read(name, &Option::number, value);
  }
  Status GetAttr(const char* name, std::string* value) const override {
    return Read(name, &Option::text, value);
  }
  Status GetAttr(const char* name, int64_t* value) const override {
    return Read(name, &Option::flag, value);
  }

 private:
  template <class Member, class T>
  Status Read(std::string_view name, Member member, T* value) const {
    for (const Option& option : all_) {
      if (name != option.name) continue;
      *value = option.*member;
      return Status();
    }
    return MakeStatus(Code::kInternal, "no option ", name);
  }

  const std::vector<Option> all_;
};

template <class T, const OpVariant& kVariant>
void SetPasses(Layer* layer) {
  layer->forward =
      std::make_unique<ForwardOf<keras::ForwardPass<T, kVariant>>>();
  layer->gradient =
      std::make_unique<PassOf<keras::GradientPass<T, kVariant>, Pass>>();
}

template <const OpVariant& kVariant>
Status SetPasses(int32_t type, Layer* layer) {
  switch (type) {
    case kArrayType<float>:
      SetPasses<float, kVariant>(layer);
      return Status();
    case kArrayType<double>:
      SetPasses<double, kVariant>(layer);
      return Status();
    case kArrayType<BFloat16>:
      SetPasses<BFloat16, kVariant>(layer);
      return Status();
    default:
      return InvalidArgument("options.type is ", type,
                             ", must be that of float32, float64 or bfloat16");
  }
}

template <const OpVariant& kLayer>
Status SetPasses(const tf_lstm_ops_layer_options& options, Layer* layer) {
  return options.bidirectional
             ? SetPasses<keras::kBidirectional<kLayer>>(options.type, layer)
             : SetPasses<kLayer>(options.type, layer);
}

Status SetPassesOfCell(const tf_lstm_ops_layer_options& options, Layer* layer) {
  switch (options.cell) {
    case TF_LSTM_OPS_LSTM:
      return SetPasses<keras::kLstm>(options, layer);
    case TF_LSTM_OPS_GRU:
      return SetPasses<keras::kGru>(options, layer);
    case TF_LSTM_OPS_GRU_RESET_BEFORE:
      return SetPasses<keras::kResetBeforeGru>(options, layer);
    case TF_LSTM_OPS_SIMPLE_RNN:
      return SetPasses<keras::kSimpleRnn>(options, layer);
    case TF_LSTM_OPS_LAYER_NORM_LSTM:
      return SetPasses<keras::kLayerNormLstm>(options, layer);
    case TF_LSTM_OPS_LAYER_NORM_GRU:
      return SetPasses<keras::kLayerNormGru>(options, layer);
    default:
      return InvalidArgument("options.cell is ", options.cell,
                             ", must be from 0 to ",
                             TF_LSTM_OPS_LAYER_NORM_GRU);
  }
}

}  // namespace

Status MakeLayer(const tf_lstm_ops_layer_options& options, Layer* layer) {
  layer->type = options.type;
  TF_LSTM_OPS_RETURN_IF_ERROR(SetPassesOfCell(options, layer));
  const Options reader(options);
  TF_LSTM_OPS_RETURN_IF_ERROR(reader.Check(layer->forward->signature()));
  TF_LSTM_OPS_RETURN_IF_ERROR(layer->forward->Init(reader));
  return layer->gradient->Init(reader);
}

}  // namespace tf_lstm_ops::training
