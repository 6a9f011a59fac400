#include "dialects/common/call_metal.h"

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

}  // namespace tf_lstm_ops
