// What the ops share: owners of TensorFlow's objects, types of elements,
// registration.
#ifndef CLIP_ROWS_C_API_H_
#define CLIP_ROWS_C_API_H_

#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>
#include <tensorflow/c/tf_status.h>
#include <tensorflow/c/tf_tensor.h>

#include <cstdio>
#include <memory>

struct Delete {
  void operator()(TF_DimensionHandle* size) const {
    TF_DeleteDimensionHandle(size);
  }
  void operator()(TF_ShapeHandle* shape) const { TF_DeleteShapeHandle(shape); }
  void operator()(TF_Status* status) const { TF_DeleteStatus(status); }
  void operator()(TF_Tensor* tensor) const { TF_DeleteTensor(tensor); }
};
template <class T>
using Owned = std::unique_ptr<T, Delete>;

template <class T>
constexpr TF_DataType kType = TF_DataType(0);  // of a type that is not below
template <>
constexpr TF_DataType kType<float> = TF_FLOAT;
template <>
constexpr TF_DataType kType<double> = TF_DOUBLE;

inline bool Ok(const TF_Status* status) { return TF_GetCode(status) == TF_OK; }

// The functions of a kernel for the CPU. Create and destroy may be null.
struct Kernel {
  void* (*create)(TF_OpKernelConstruction*);
  void (*compute)(void*, TF_OpKernelContext*);
  void (*destroy)(void*);
};

// Registers a kernel for the type T of an op's attribute "T".
template <class T>
void Register(const char* op, const Kernel& kernel, TF_Status* status) {
  static_assert(kType<T> != 0, "kType lacks the type of the kernel");
  if (!Ok(status)) return;
  TF_KernelBuilder* builder = TF_NewKernelBuilder(
      op, "CPU", kernel.create, kernel.compute, kernel.destroy);
  TF_KernelBuilder_TypeConstraint(builder, "T", kType<T>, status);
  if (Ok(status)) TF_RegisterKernelBuilder(op, builder, status);
}

#endif  // CLIP_ROWS_C_API_H_
