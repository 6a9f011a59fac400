// MultiLayerAlgorithm: a multi-layer RNN (core/multi_layer_rnn.h) by one
// algorithm: cuDNN's, or layer by layer on the package's own kernels.
#ifndef TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_MULTI_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_MULTI_LAYER_H_

#include <cstdint>
#include <memory>

#include "backends/cuda/runtime/autotune.h"
#include "backends/cuda/runtime/device.h"
#include "core/dropout.h"
#include "core/multi_layer_rnn.h"

namespace tf_lstm_ops::cuda {

// All tensors lie in device memory, belong to the caller, and have the shapes
// of MultiLayerForward and MultiLayerBackward. T is float, double, Half or
// BFloat16. A backward pass must use the algorithm of its forward pass.
template <class T>
class MultiLayerAlgorithm {
 public:
  // Without dropout `mask` is null. The key of the mask is read from the header
  // of the reserve. `rnn` and `mask` must outlive the object.
  static std::unique_ptr<MultiLayerAlgorithm> Make(const MultiLayerRnn& rnn,
                                                   const DropoutMask* mask,
                                                   Algorithm algorithm);

  MultiLayerAlgorithm() = default;
  virtual ~MultiLayerAlgorithm() = default;
  MultiLayerAlgorithm(const MultiLayerAlgorithm&) = delete;
  MultiLayerAlgorithm& operator=(const MultiLayerAlgorithm&) = delete;

  // Must be called before the functions below. `device` must outlive the
  // object. Errors: FailedPrecondition where a library is missing;
  // InvalidArgument for sizes that exceed the integers of the library;
  // Unimplemented where the algorithm cannot compute this RNN;
  // ResourceExhausted; Internal.
  virtual Status Begin(const Device& device, bool is_training) = 0;

  // The size of the reserve in elements. It identifies the algorithm; see
  // TaggedSize.
  virtual int64_t reserve_size() const = 0;

  // In training the caller must have written the header of `reserve`
  // (core/reserve.h). Only its dropout key is read, and only with dropout. In
  // inference `reserve` is null. Errors: those of Begin.
  virtual Status ComputeForward(const MultiLayerForward<T>& t) = 0;
  // Does not change the reserve, so further backward passes may use it. Errors:
  // those of Begin.
  virtual Status ComputeBackward(const MultiLayerBackward<T>& t) = 0;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_MULTI_LAYER_H_
