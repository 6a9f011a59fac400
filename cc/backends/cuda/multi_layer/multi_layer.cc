#include "backends/cuda/multi_layer/multi_layer.h"

#include "backends/cuda/cudnn/multi_layer.h"
#include "backends/cuda/multi_layer/fused.h"

namespace tf_lstm_ops::cuda {

template <class T>
std::unique_ptr<MultiLayerAlgorithm<T>> MultiLayerAlgorithm<T>::Make(
    const MultiLayerRnn& rnn, const DropoutMask* mask, Algorithm algorithm) {
  if (IsCudnn(algorithm)) {
    return std::make_unique<CudnnMultiLayer<T>>(rnn, mask, algorithm);
  }
  return std::make_unique<FusedMultiLayer<T>>(rnn, mask, algorithm);
}

template class MultiLayerAlgorithm<float>;
template class MultiLayerAlgorithm<double>;
template class MultiLayerAlgorithm<Half>;
template class MultiLayerAlgorithm<BFloat16>;

}  // namespace tf_lstm_ops::cuda
