// Definition of an op in TensorFlow from its Signature.
#ifndef TF_LSTM_OPS_TF_OP_H_
#define TF_LSTM_OPS_TF_OP_H_

#include "core/signature.h"
#include "tf/tensorflow_api.h"

namespace tf_lstm_ops::tf {

// The shape function: checks the known shapes of the inputs and sets the shapes
// of the outputs. Errors, in `status`: those of CheckInputs, and TensorFlow's.
void InferShapes(const Signature& signature, TF_ShapeInferenceContext* context,
                 TF_Status* status);

// Defines the op with the shape function `infer`. Prints an error to stderr.
void RegisterOp(const Signature& signature,
                void (*infer)(TF_ShapeInferenceContext*, TF_Status*));

// Defines an op at static initialisation and returns true. Only sources of the
// CPU library (*_cpu.cc) call it, because a library that adds kernels for a GPU
// must not define the ops again.
//
// kSignature is a function, so that the table is initialised before its first
// use.
template <const Signature& (*kSignature)()>
bool DefineOp() {
  RegisterOp(kSignature(),
             [](TF_ShapeInferenceContext* context, TF_Status* status) {
               InferShapes(kSignature(), context, status);
             });
  return true;
}

}  // namespace tf_lstm_ops::tf

#endif  // TF_LSTM_OPS_TF_OP_H_
