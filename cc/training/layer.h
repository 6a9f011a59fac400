// Layer: the passes of one recurrent layer over the caller's arrays.
#ifndef TF_LSTM_OPS_TRAINING_LAYER_H_
#define TF_LSTM_OPS_TRAINING_LAYER_H_

#include <memory>
#include <vector>

#include "core/attribute_reader.h"
#include "core/shape.h"
#include "core/signature.h"
#include "core/status.h"
#include "tf_lstm_ops.h"
#include "training/arrays.h"

namespace tf_lstm_ops::training {

// An op of any cell and type; see keras::ForwardPass and GradientPass. Any
// number of threads may use it at once.
class Pass {
 public:
  virtual ~Pass() = default;
  virtual const Signature& signature() const = 0;
  virtual Status Init(const AttributeReader& reader) = 0;
  virtual Status Compute(const Arrays& arrays, int threads) = 0;
};

// A forward op.
class Forward : public Pass {
 public:
  // Sets the shapes of the outputs of a call. It reads the mask only.
  virtual Status Infer(const Arrays& arrays,
                       std::vector<Shape>* shapes) const = 0;
};

struct Layer {
  int32_t type;  // of all arrays
  std::unique_ptr<Forward> forward;
  std::unique_ptr<Pass> gradient;
};

// Makes a layer. All members of `options` are there. Error: InvalidArgument
// where the cell or the type is unknown, an option has a wrong value, or the
// cell does not have it.
Status MakeLayer(const tf_lstm_ops_layer_options& options, Layer* layer);

}  // namespace tf_lstm_ops::training

#endif  // TF_LSTM_OPS_TRAINING_LAYER_H_
