#include "tf/op.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "tf/status.h"

namespace tf_lstm_ops::tf {
namespace {

struct DeleteHandle {
  void operator()(TF_ShapeHandle* h) const { TF_DeleteShapeHandle(h); }
  void operator()(TF_DimensionHandle* h) const { TF_DeleteDimensionHandle(h); }
};
using ShapePtr = std::unique_ptr<TF_ShapeHandle, DeleteHandle>;
using DimensionPtr = std::unique_ptr<TF_DimensionHandle, DeleteHandle>;

// TensorFlow's shape inference with RAII handles and core's Status.
class Inference {
 public:
  explicit Inference(TF_ShapeInferenceContext* context) : context_(context) {}

  Status Input(int i, ShapePtr* handle) {
    handle->reset(TF_NewShapeHandle());
    TF_ShapeInferenceContextGetInput(context_, i, handle->get(), status_.get());
    return status_.ToStatus();
  }

  Shape Describe(TF_ShapeHandle* handle) {
    if (!TF_ShapeInferenceContextRankKnown(context_, handle)) return Shape();
    const auto rank =
        static_cast<int>(TF_ShapeInferenceContextRank(context_, handle));
    Shape shape = Shape::OfRank(rank);
    for (int k = 0; k < rank; ++k) {
      const DimensionPtr dim(TF_NewDimensionHandle());
      TF_ShapeInferenceContextDim(context_, handle, k, dim.get());
      if (TF_DimensionHandleValueKnown(dim.get())) {
        shape.set_dim(k, TF_DimensionHandleValue(dim.get()));
      }
    }
    return shape;
  }

  Status WithRank(TF_ShapeHandle* handle, int rank) {
    TF_ShapeInferenceContextWithRank(context_, handle, rank, handle,
                                     status_.get());
    return status_.ToStatus();
  }

  ShapePtr Scalar() {
    return ShapePtr(TF_ShapeInferenceContextScalar(context_));
  }

  Status AppendSize(TF_ShapeHandle* shape, int64_t size) {
    const ShapePtr vector(TF_ShapeInferenceContextVectorFromSize(
        context_, static_cast<size_t>(size)));
    return Append(shape, vector.get());
  }

  Status AppendUnknown(TF_ShapeHandle* shape) {
    // As an int64_t this is -1, TensorFlow's unknown size.
    return AppendSize(shape, kUnknown);
  }

  Status AppendDim(TF_ShapeHandle* shape, TF_ShapeHandle* from, int k) {
    const ShapePtr part(TF_NewShapeHandle());
    TF_ShapeInferenceContextSubshape(context_, from, k, k + 1, part.get(),
                                     status_.get());
    TF_LSTM_OPS_RETURN_IF_ERROR(status_.ToStatus());
    return Append(shape, part.get());
  }

  Status SetAllUnknown() {
    TF_ShapeInferenceContextSetUnknownShape(context_, status_.get());
    return status_.ToStatus();
  }

  Status SetOutput(int i, TF_ShapeHandle* shape) {
    TF_ShapeInferenceContextSetOutput(context_, i, shape, status_.get());
    return status_.ToStatus();
  }

 private:
  Status Append(TF_ShapeHandle* shape, TF_ShapeHandle* more) {
    TF_ShapeInferenceContextConcatenateShapes(context_, shape, more, shape,
                                              status_.get());
    return status_.ToStatus();
  }

  TF_ShapeInferenceContext* context_;
  TfStatus status_;
};

// Appends the dimension that an input has, which may be unknown, to `shape`. No
// input has the sizes of two layers.
Status AppendOfInput(const Signature& signature,
                     const std::vector<ShapePtr>& inputs, Extent extent,
                     Inference* inference, TF_ShapeHandle* shape) {
  if (extent == Extent::kOpaque || extent == Extent::kTwoCell ||
      extent == Extent::kTwoHidden) {
    return inference->AppendUnknown(shape);
  }
  for (size_t n = 0; n < inputs.size(); ++n) {
    const Argument& argument = signature.inputs[n];
    for (int k = 0; k < argument.dims.rank; ++k) {
      if (argument.dims.extents[k] == extent && !argument.optional) {
        return inference->AppendDim(shape, inputs[n].get(), k);
      }
    }
  }
  return MakeStatus(Code::kInternal, signature.op, ": no input has the size");
}

Status InferOutputs(const Signature& signature,
                    const std::vector<ShapePtr>& inputs, const Sizes& sizes,
                    Inference* inference) {
  TF_LSTM_OPS_RETURN_IF_ERROR(inference->SetAllUnknown());
  for (size_t n = 0; n < signature.outputs.size(); ++n) {
    const Argument& output = signature.outputs[n];
    if (output.like) {
      const int input = signature.InputIndex(output.like);
      TF_LSTM_OPS_RETURN_IF_ERROR(
          inference->SetOutput(static_cast<int>(n), inputs[input].get()));
      continue;
    }
    if (output.dims.rank == kAnyRank) continue;
    const ShapePtr shape = inference->Scalar();
    for (int k = 0; k < output.dims.rank; ++k) {
      const Extent extent = output.dims.extents[k];
      const int64_t size = sizes.Value(extent);
      TF_LSTM_OPS_RETURN_IF_ERROR(
          size == kUnknown
              ? AppendOfInput(signature, inputs, extent, inference, shape.get())
              : inference->AppendSize(shape.get(), size));
    }
    TF_LSTM_OPS_RETURN_IF_ERROR(
        inference->SetOutput(static_cast<int>(n), shape.get()));
  }
  return Status();
}

Status Infer(const Signature& signature, TF_ShapeInferenceContext* context) {
  Inference inference(context);
  std::vector<ShapePtr> handles(signature.inputs.size());
  Shapes shapes;
  for (size_t n = 0; n < handles.size(); ++n) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        inference.Input(static_cast<int>(n), &handles[n]));
    shapes.push_back(inference.Describe(handles[n].get()));
  }
  Sizes sizes;
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckInputs(signature, shapes, &sizes));
  for (size_t n = 0; n < handles.size(); ++n) {
    const Argument& argument = signature.inputs[n];
    if (argument.optional || argument.dims.rank == kAnyRank) continue;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        inference.WithRank(handles[n].get(), argument.dims.rank));
  }
  return InferOutputs(signature, handles, sizes, &inference);
}

}  // namespace

void InferShapes(const Signature& signature, TF_ShapeInferenceContext* context,
                 TF_Status* status) {
  SetStatus(CatchExceptions([&] { return Infer(signature, context); }), status);
}

void RegisterOp(const Signature& signature,
                void (*infer)(TF_ShapeInferenceContext*, TF_Status*)) {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(signature.op);
  for (const char* attribute : signature.attributes) {
    TF_OpDefinitionBuilderAddAttr(builder, attribute);
  }
  const auto spec = [](const Argument& argument) {
    return std::string(argument.name) + ": " + argument.type;
  };
  for (const Argument& input : signature.inputs) {
    TF_OpDefinitionBuilderAddInput(builder, spec(input).c_str());
  }
  for (const char* list : signature.input_lists) {
    TF_OpDefinitionBuilderAddInput(builder, list);
  }
  for (const Argument& output : signature.outputs) {
    TF_OpDefinitionBuilderAddOutput(builder, spec(output).c_str());
  }
  for (const char* list : signature.output_lists) {
    TF_OpDefinitionBuilderAddOutput(builder, list);
  }
  // TensorFlow ignores the value. A call with false would have the same effect.
  if (signature.stateful) TF_OpDefinitionBuilderSetIsStateful(builder, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, infer);
  const TfStatus status;
  TF_RegisterOpDefinition(builder, status.get());
  if (!status.ok()) {
    std::fprintf(stderr, "tf_lstm_ops: cannot define op %s: %s\n", signature.op,
                 status.ToStatus().message().c_str());
  }
}

}  // namespace tf_lstm_ops::tf
