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

// All tensors lie in device memory, with the shapes of MultiLayerForward and
// MultiLayerBackward. T is float, double, Half or BFloat16. A backward pass
// must use the algorithm of its forward pass.
template <class T>
class MultiLayerAlgorithm {
 public:
  // `mask` null: no dropout. The key of the mask is read from the reserve's
  // header. `rnn` and `mask` must outlive the object.
  static std::unique_ptr<MultiLayerAlgorithm> Make(const MultiLayerRnn& rnn,
                                                   const DropoutMask* mask,
                                                   Algorithm algorithm);

  MultiLayerAlgorithm() = default;
  virtual ~MultiLayerAlgorithm() = default;
  MultiLayerAlgorithm(const MultiLayerAlgorithm&) = delete;
  MultiLayerAlgorithm& operator=(const MultiLayerAlgorithm&) = delete;

  // Must come before all else. `device` must outlive the object. Errors:
  // FailedPrecondition where a library is missing; InvalidArgument for sizes
  // that the library cannot count; Unimplemented where the algorithm cannot
  // compute this RNN; ResourceExhausted; Internal.
  virtual Status Begin(const Device& device, bool is_training) = 0;

  // The size of the reserve in elements. It identifies the algorithm; see
  // TaggedSize.
  virtual int64_t reserve_size() const = 0;

  // In training the caller must have written the header of `reserve`
  // (core/reserve.h); without dropout its contents do not matter here. In
  // inference `reserve` is null.
  virtual Status ComputeForward(const MultiLayerForward<T>& t) = 0;
  // Does not change the reserve: further backward passes may use it.
  virtual Status ComputeBackward(const MultiLayerBackward<T>& t) = 0;
};

}  // namespace tf_lstm_ops::cuda

#endif  // TF_LSTM_OPS_BACKENDS_CUDA_MULTI_LAYER_MULTI_LAYER_H_
