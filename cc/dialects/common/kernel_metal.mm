#include "dialects/common/kernel_metal.h"

#include <cstring>
#include <sstream>

namespace tf_lstm_ops {
namespace {

// Sets `text` to the value of an attribute. `declaration` is its entry in the signature, such as
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

Status MetalKernel::Init(const tf::KernelConstruction& construction) {
  options_ = signature_.op;
  for (const std::string declaration : signature_.attributes) {
    const std::string name = declaration.substr(0, declaration.find(':'));
    if (name == "seed" || name == "seed2") continue;  // the dropout mask is an argument
    std::string value;
    TF_LSTM_OPS_RETURN_IF_ERROR(AttributeText(construction, name, declaration, &value));
    options_ += ' ' + name + '=' + value;
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
    arguments.push_back({const_cast<float*>(argument.elements.data()), true});
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
      return MakeStatus(Code::kInternal,
                        "tf_lstm_ops: MPSGraph failed: ", [[exception reason] UTF8String]);
    }
  }
}

std::vector<std::function<Status()>>& StockKernels() {
  static auto* const kernels = new std::vector<std::function<Status()>>;
  return *kernels;
}

namespace {

Status RegisterStockKernels() {
  for (const auto& register_kernel : StockKernels()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(register_kernel());
  }
  return Status();
}

}  // namespace
}  // namespace tf_lstm_ops

const char* tf_lstm_ops_override_stock_on_metal() {
  // Once: two equal kernels of the same priority would be ambiguous.
  static const tf_lstm_ops::Status status = tf_lstm_ops::RegisterStockKernels();
  return status.ok() ? nullptr : status.message().c_str();
}
