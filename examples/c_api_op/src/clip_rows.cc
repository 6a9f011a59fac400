// ClipRows: scales the rows of a matrix to Euclidean norms of at most max_norm.
#include <cmath>

#include "c_api.h"

namespace {

constexpr char kOp[] = "Example>ClipRows";

// The output has the shape of the input, a matrix.
void InferShape(TF_ShapeInferenceContext* context, TF_Status* status) {
  const Owned<TF_ShapeHandle> x(TF_NewShapeHandle());
  TF_ShapeInferenceContextGetInput(context, 0, x.get(), status);
  TF_ShapeInferenceContextWithRank(context, x.get(), 2, x.get(), status);
  if (!Ok(status)) return;
  TF_ShapeInferenceContextSetOutput(context, 0, x.get(), status);
}

// Returns the object that the other functions of the kernel get: the attribute.
void* Create(TF_OpKernelConstruction* context) {
  const Owned<TF_Status> owned(TF_NewStatus());
  TF_Status* status = owned.get();
  float value = 0;
  TF_OpKernelConstruction_GetAttrFloat(context, "max_norm", &value, status);
  if (Ok(status) && !(value > 0)) {  // also NaN
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "max_norm must be positive");
  }
  if (!Ok(status)) TF_OpKernelConstruction_Failure(context, status);
  return new float(value);
}

template <class T>
void Clip(TF_OpKernelContext* context, double max_norm, TF_Status* status) {
  TF_Tensor* input = nullptr;
  TF_GetInput(context, 0, &input, status);
  const Owned<TF_Tensor> x(input);
  if (!Ok(status)) return;
  if (TF_NumDims(input) != 2) {
    return TF_SetStatus(status, TF_INVALID_ARGUMENT, "x must be a matrix");
  }
  const int64_t dims[] = {TF_Dim(input, 0), TF_Dim(input, 1)}, size = dims[1];
  const Owned<TF_Tensor> y(TF_AllocateOutput(context, 0, kType<T>, dims, 2,
                                             TF_TensorByteSize(input), status));
  if (!Ok(status)) return;
  const auto* from = static_cast<const T*>(TF_TensorData(input));
  auto* to = static_cast<T*>(TF_TensorData(y.get()));
  for (int64_t row = 0; row < dims[0]; ++row, from += size, to += size) {
    double squares = 0;
    for (int64_t k = 0; k < size; ++k) squares += double(from[k]) * from[k];
    const double norm = std::sqrt(squares);
    const double scale = norm > max_norm ? max_norm / norm : 1;
    for (int64_t k = 0; k < size; ++k) to[k] = T(from[k] * scale);
  }
}

template <class T>
void Compute(void* max_norm, TF_OpKernelContext* context) {
  const Owned<TF_Status> status(TF_NewStatus());
  Clip<T>(context, *static_cast<float*>(max_norm), status.get());
  if (!Ok(status.get())) TF_OpKernelContext_Failure(context, status.get());
}

void Destroy(void* max_norm) { delete static_cast<float*>(max_norm); }

const bool registered = [] {
  const Owned<TF_Status> owned(TF_NewStatus());
  TF_Status* status = owned.get();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(kOp);
  TF_OpDefinitionBuilderAddAttr(op, "T: {float, double}");
  TF_OpDefinitionBuilderAddAttr(op, "max_norm: float");
  TF_OpDefinitionBuilderAddInput(op, "x: T");
  TF_OpDefinitionBuilderAddOutput(op, "y: T");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, &InferShape);
  TF_RegisterOpDefinition(op, status);
  Register<float>(kOp, {&Create, &Compute<float>, &Destroy}, status);
  Register<double>(kOp, {&Create, &Compute<double>, &Destroy}, status);
  if (!Ok(status)) std::fprintf(stderr, "%s: %s\n", kOp, TF_Message(status));
  return Ok(status);
}();

}  // namespace
