#include "backends/cuda/multi_layer/multi_layer.h"

#include "backends/cuda/cudnn/multi_layer.h"
#include "backends/cuda/multi_layer/fused.h"

namespace tf_lstm_ops::cuda {

template <class T>
std::unique_ptr<Stack<T>> Stack<T>::Make(const MultiLayerRnn& problem,
                                         const DropoutMask* mask, Way way) {
  if (!IsCudnns(way)) return std::make_unique<OwnStack<T>>(problem, mask);
  return std::make_unique<CudnnStack<T>>(problem, mask,
                                         static_cast<cudnnRNNAlgo_t>(way));
}

template class Stack<float>;
template class Stack<double>;
template class Stack<Half>;
template class Stack<BFloat16>;

}  // namespace tf_lstm_ops::cuda
