// The CPU backend's entry points: the passes of one layer direction.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_

#include <cstddef>
#include <vector>

#include "backends/cpu/weights/kept_weights.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

// Of each layer direction.
using PackedSequences = std::vector<PackedSequence>;

// Compute the passes of independent layer directions, such as the two
// directions of a layer: 1 to kMaxTogether of them. T is float or double. They
// run side by side where that is faster.
//
// valid[d] lists the valid steps of layers[d]; its input and output rows differ
// from those of layers[d].sequence where the caller stores rows without
// padding. The passes run on at most `threads` threads, and on one where the
// work is small. The result does not depend on the number of threads. kept[d],
// if `kept` is not null, keeps the packed weights of layers[d] for later calls;
// the weights must lie without gaps then. In the backward pass all layer
// directions but the first may add to the x_grad of the first. Throw
// std::bad_alloc.
template <class T>
void ComputeForward(const LayerForward<T>* layers, const PackedSequence* valid,
                    size_t count, int threads, KeptWeights* kept = nullptr);
template <class T>
void ComputeBackward(const LayerBackward<T>* layers,
                     const PackedSequence* valid, size_t count, int threads);

// The same of one layer direction.
template <class T>
void ComputeForward(const LayerForward<T>& layer, const PackedSequence& valid,
                    int threads, KeptWeights* kept = nullptr) {
  ComputeForward(&layer, &valid, 1, threads, kept);
}
template <class T>
void ComputeBackward(const LayerBackward<T>& layer, const PackedSequence& valid,
                     int threads) {
  ComputeBackward(&layer, &valid, 1, threads);
}

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_
