// ScaleRows: multiplies each row of a matrix by an element of a vector.
#include "c_api.h"

namespace {

constexpr char kOp[] = "Example>ScaleRows";
constexpr char kSizes[] = "scale must have an element for each row of x";

// Reads the shape of an input, which must have a rank.
void Get(TF_ShapeInferenceContext* context, int input, int rank,
         const Owned<TF_ShapeHandle>& shape, TF_Status* status) {
  if (!Ok(status)) return;
  TF_ShapeInferenceContextGetInput(context, input, shape.get(), status);
  TF_ShapeInferenceContextWithRank(context, shape.get(), rank, shape.get(),
                                   status);
}

// The size of the first dimension; -1 if it is unknown.
int64_t FirstSize(TF_ShapeInferenceContext* context,
                  const Owned<TF_ShapeHandle>& shape) {
  const Owned<TF_DimensionHandle> size(TF_NewDimensionHandle());
  TF_ShapeInferenceContextDim(context, shape.get(), 0, size.get());
  return TF_DimensionHandleValueKnown(size.get())
             ? TF_DimensionHandleValue(size.get())
             : -1;
}

void InferShape(TF_ShapeInferenceContext* context, TF_Status* status) {
  const Owned<TF_ShapeHandle> x(TF_NewShapeHandle()),
      scale(TF_NewShapeHandle());
  Get(context, 0, 2, x, status);
  Get(context, 1, 1, scale, status);
  if (!Ok(status)) return;
  const int64_t rows = FirstSize(context, x), count = FirstSize(context, scale);
  if (rows != count && rows >= 0 && count >= 0) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, kSizes);
  }
  TF_ShapeInferenceContextSetOutput(context, 0, x.get(), status);
}

template <class T>
void Scale(TF_OpKernelContext* context, TF_Status* status) {
  TF_Tensor *input = nullptr, *factors = nullptr;
  TF_GetInput(context, 0, &input, status);
  const Owned<TF_Tensor> x(input);
  if (!Ok(status)) return;
  TF_GetInput(context, 1, &factors, status);
  const Owned<TF_Tensor> scale(factors);
  if (!Ok(status)) return;
  if (TF_NumDims(input) != 2 || TF_NumDims(factors) != 1 ||
      TF_Dim(input, 0) != TF_Dim(factors, 0)) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, kSizes);
  }
  const int64_t dims[] = {TF_Dim(input, 0), TF_Dim(input, 1)};
  const Owned<TF_Tensor> y(TF_AllocateOutput(context, 0, kType<T>, dims, 2,
                                             TF_TensorByteSize(input), status));
  if (!Ok(status)) return;
  const auto* from = static_cast<const T*>(TF_TensorData(input));
  const auto* by = static_cast<const T*>(TF_TensorData(factors));
  auto* to = static_cast<T*>(TF_TensorData(y.get()));
  for (int64_t row = 0; row < dims[0]; ++row) {
    for (int64_t k = 0; k < dims[1]; ++k) *to++ = *from++ * by[row];
  }
}

template <class T>
void Compute(void*, TF_OpKernelContext* context) {
  const Owned<TF_Status> status(TF_NewStatus());
  Scale<T>(context, status.get());
  if (!Ok(status.get())) TF_OpKernelContext_Failure(context, status.get());
}

const bool registered = [] {
  const Owned<TF_Status> owned(TF_NewStatus());
  TF_Status* status = owned.get();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(kOp);
  TF_OpDefinitionBuilderAddAttr(op, "T: {float, double}");
  TF_OpDefinitionBuilderAddInput(op, "x: T");
  TF_OpDefinitionBuilderAddInput(op, "scale: T");
  TF_OpDefinitionBuilderAddOutput(op, "y: T");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, &InferShape);
  TF_RegisterOpDefinition(op, status);
  Register<float>(kOp, {nullptr, &Compute<float>, nullptr}, status);
  Register<double>(kOp, {nullptr, &Compute<double>, nullptr}, status);
  if (!Ok(status)) std::fprintf(stderr, "%s: %s\n", kOp, TF_Message(status));
  return Ok(status);
}();

}  // namespace
