#include "dialects/common/kernel_metal.h"

#include <sstream>

namespace tf_lstm_ops {
namespace {

MPSDataType Convert(TF_DataType type) {
  switch (type) {
    case TF_HALF:
      return MPSDataTypeFloat16;
    case TF_BFLOAT16:
      return metal::kBFloat16Type;
    default:
      return MPSDataTypeFloat32;
  }
}

template <class V>
Status Append(const tf::KernelConstruction& construction, const std::string& name,
              std::string* options) {
  V value{};
  TF_LSTM_OPS_RETURN_IF_ERROR(construction.GetAttr(name.c_str(), &value));
  std::ostringstream written;
  written << ' ' << name << '=' << std::hexfloat << value;
  *options += written.str();
  return Status();
}

// Appends the value of an attribute. `type` is its type in the signature, "bool" or "{'a', 'b'}".
Status AppendAttribute(const tf::KernelConstruction& construction, const std::string& name,
                       const std::string& type, std::string* options) {
  if (name == "T" || name == "S") return Append<TF_DataType>(construction, name, options);
  if (type == "bool") return Append<bool>(construction, name, options);
  if (type == "int") return Append<int64_t>(construction, name, options);
  if (type == "float") return Append<float>(construction, name, options);
  return Append<std::string>(construction, name, options);
}

}  // namespace

metal::Value GraphBuilder::In(const char* name) {
  if (!Has(name)) return 0;
  const int n = call_.signature.InputIndex(name);
  return Argument(n, call_.inputs[n].shape().dims(), Convert(type_));
}

metal::Value GraphBuilder::HostArgument(const char* name, const metal::Value& absent) {
  for (size_t k = 0; k < call_.host_arguments.size(); ++k) {
    const MetalCall::HostArgument& argument = call_.host_arguments[k];
    if (argument.name != name) continue;
    const auto index = static_cast<int>(call_.inputs.size() + k);
    const auto type = argument.indices.empty() ? MPSDataTypeFloat32 : MPSDataTypeInt32;
    return Argument(index, argument.shape, type);
  }
  return absent;
}

metal::Value GraphBuilder::Argument(int index, const metal::Extents& shape, MPSDataType type) {
  const auto found = arguments_.find(index);
  if (found != arguments_.end()) return found->second;
  return arguments_[index] = program_->AddArgument(index, shape, type);
}

void GraphBuilder::Out(int n, const metal::Value& value) {
  program_->AddResult(n, value, output_shape(n), Convert(type_));
}

Status MetalKernel::Init(const tf::KernelConstruction& construction) {
  options_ = signature_.op;
  for (const std::string declaration : signature_.attributes) {  // "name: type = default"
    const size_t colon = declaration.find(':');
    const std::string name = declaration.substr(0, colon);
    if (name == "seed" || name == "seed2") continue;  // the dropout mask is an argument
    const std::string rest = declaration.substr(colon + 2);
    const std::string type = rest.substr(0, rest.find(" ="));
    TF_LSTM_OPS_RETURN_IF_ERROR(AppendAttribute(construction, name, type, &options_));
  }
  return construction.GetAttr("T", &type_);
}

Status MetalKernel::Run(const tf::KernelContext& context, const MetalCall& call,
                        const std::function<void(GraphBuilder*)>& build) const {
  std::string key = options_;
  std::vector<metal::Memory> arguments, results;
  for (const tf::Tensor& input : call.inputs) {
    key += ' ' + input.shape().ToString();
    arguments.push_back({input.data<void>()});
  }
  for (const MetalCall::HostArgument& argument : call.host_arguments) {
    key += ' ' + argument.name + Shape(argument.shape).ToString();
    arguments.push_back({const_cast<void*>(argument.data()), true});
  }
  for (const tf::Tensor& output : call.outputs()) {
    results.push_back({output.data<void>()});
  }
  SP_Stream stream = nullptr;
  if (metal::NeedsStream()) TF_LSTM_OPS_RETURN_IF_ERROR(context.Stream(&stream));
  @autoreleasepool {
    @try {
      const auto program = metal::FindProgram(key, [&](metal::Program* program) {
        GraphBuilder builder(call, type_, program);
        build(&builder);
      });
      if (program->results().empty()) return Status();
      return metal::Execute(stream, *program, arguments, results);
    } @catch (NSException* exception) {
      NSString* reason = [exception reason] ?: [exception name];  // which may be nil
      return MakeStatus(Code::kInternal, "tf_lstm_ops: MPSGraph failed: ", [reason UTF8String]);
    }
  }
}

}  // namespace tf_lstm_ops
