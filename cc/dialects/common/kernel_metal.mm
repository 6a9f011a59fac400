#include "dialects/common/kernel_metal.h"

#include <cstring>
#include <sstream>

namespace tf_lstm_ops::metal {
namespace {

MPSDataType Convert(TF_DataType type) {
  switch (type) {
    case TF_HALF:
      return MPSDataTypeFloat16;
    case TF_BFLOAT16:
      return MPSDataTypeBFloat16;
    case TF_BOOL:
      return MPSDataTypeBool;
    default:
      return MPSDataTypeFloat32;
  }
}

// The value of an attribute that was declared as `declaration`, such as
// "training: bool = true".
Status AttributeText(const tf::KernelConstruction& construction, const std::string& name,
                     const std::string& declaration, std::string* text) {
  const auto starts = [&](const char* kind) {
    return declaration.compare(name.size() + 2, std::strlen(kind), kind) == 0;
  };
  std::ostringstream written;
  Status status;
  if (name == "T" || name == "S") {
    TF_DataType value = TF_FLOAT;
    status = construction.GetAttr(name.c_str(), &value);
    written << value;
  } else if (starts("bool")) {
    bool value = false;
    status = construction.GetAttr(name.c_str(), &value);
    written << value;
  } else if (starts("int")) {
    int64_t value = 0;
    status = construction.GetAttr(name.c_str(), &value);
    written << value;
  } else if (starts("float")) {
    float value = 0;
    status = construction.GetAttr(name.c_str(), &value);
    written << std::hexfloat << value;
  } else {
    status = construction.GetAttr(name.c_str(), text);
    return status;
  }
  *text = written.str();
  return status;
}

}  // namespace

Status Call::Allocate(const tf::KernelContext& context, TF_DataType type, const Shape& shape) {
  const auto index = static_cast<int>(outputs_.size());
  outputs_.emplace_back();
  output_shapes_.push_back(shape);
  return context.AllocateOutput(index, type, shape, &outputs_.back());
}

Status Call::AllocateAll(const tf::KernelContext& context, TF_DataType type) {
  for (const Argument& output : signature.outputs) {
    TF_LSTM_OPS_RETURN_IF_ERROR(Allocate(context, type,
                                         output.like
                                             ? inputs[signature.InputIndex(output.like)].shape()
                                             : OutputShape(output, sizes)));
  }
  return Status();
}

Value Builder::In(const char* name) {
  const int n = call_.signature.InputIndex(name);
  if (!Has(name)) return 0;
  const bool is_bool = std::strcmp(call_.signature.inputs[n].type, "bool") == 0;
  return program_->AddArgument(n, call_.inputs[n].shape().dims(),
                               Convert(is_bool ? TF_BOOL : type_));
}

Value Builder::In(size_t n) {
  return program_->AddArgument(static_cast<int>(n), call_.inputs[n].shape().dims(), Convert(type_));
}

Value Builder::Made(const char* name) {
  for (size_t k = 0; k < call_.made.size(); ++k) {
    if (call_.made[k].name != name) continue;
    const auto index = static_cast<int>(call_.inputs.size() + k);
    return program_->AddArgument(index, call_.made[k].shape, MPSDataTypeFloat32);
  }
  return 0;
}

void Builder::Out(int n, const Value& value) {
  program_->AddResult(n, value, call_.output_shape(n).dims(), Convert(type_));
}

Status Kernel::Init(const tf::KernelConstruction& construction) {
  options_ = signature_.op;
  for (const std::string declaration : signature_.attributes) {
    const std::string name = declaration.substr(0, declaration.find(':'));
    std::string value;
    TF_LSTM_OPS_RETURN_IF_ERROR(AttributeText(construction, name, declaration, &value));
    options_ += ' ' + name + '=' + value;
  }
  return construction.GetAttr("T", &type_);
}

Status Kernel::Run(const tf::KernelContext& context, const Call& call,
                   const std::function<void(Builder*)>& build) const {
  std::string key = options_;
  std::vector<Memory> arguments, results;
  for (const tf::Tensor& input : call.inputs) {
    key += ' ' + input.shape().ToString();
    arguments.push_back({input.data<void>()});
  }
  for (const Call::Made& made : call.made) {
    key += ' ' + made.name + Shape(made.shape).ToString();
    arguments.push_back({const_cast<float*>(made.numbers.data()), true});
  }
  for (const tf::Tensor& output : call.outputs_) {
    results.push_back({output.data<void>()});
  }
  @autoreleasepool {
    @try {
      const auto program = FindProgram(key, [&](Program* program) {
        Builder builder(call, type_, program);
        build(&builder);
      });
      if (program->results().empty()) return Status();
      return Execute(context, *program, arguments, results);
    } @catch (NSException* exception) {
      return MakeStatus(Code::kInternal,
                        "tf_lstm_ops: MPSGraph failed: ", [[exception reason] UTF8String]);
    }
  }
}

}  // namespace tf_lstm_ops::metal
