#include "dialects/common/call_metal.h"

#include <cstring>

namespace tf_lstm_ops {
namespace {

MPSDataType Convert(TF_DataType type) {
  switch (type) {
    case TF_HALF:
      return MPSDataTypeFloat16;
    case TF_BFLOAT16:
      return metal::kBFloat16Type;
    case TF_BOOL:
      return MPSDataTypeBool;
    default:
      return MPSDataTypeFloat32;
  }
}

}  // namespace

metal::Value GraphBuilder::In(const char* name) {
  const int n = call_.signature.InputIndex(name);
  if (!Has(name)) return 0;
  const bool is_bool = std::strcmp(call_.signature.inputs[n].type, "bool") == 0;
  return program_->AddArgument(n, call_.inputs[n].shape().dims(),
                               Convert(is_bool ? TF_BOOL : type_));
}

metal::Value GraphBuilder::In(size_t n) {
  return program_->AddArgument(static_cast<int>(n), call_.inputs[n].shape().dims(), Convert(type_));
}

metal::Value GraphBuilder::HostArgument(const char* name, const metal::Value& absent) {
  for (size_t k = 0; k < call_.host_arguments.size(); ++k) {
    const MetalCall::HostArgument& argument = call_.host_arguments[k];
    if (argument.name != name) continue;
    const auto index = static_cast<int>(call_.inputs.size() + k);
    return program_->AddArgument(index, argument.shape, MPSDataTypeFloat32);
  }
  return absent;
}

void GraphBuilder::Out(int n, const metal::Value& value) {
  program_->AddResult(n, value, output_shape(n), Convert(type_));
}

}  // namespace tf_lstm_ops
