// The CPU backend's entry points: the passes of one layer direction.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_

#include <memory>
#include <vector>

#include "backends/cpu/weights/kept_weights.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

// Computes a forward or backward pass. T is float or double. `valid` lists the
// valid steps; its input and output rows differ from those of layer.sequence
// where the caller stores rows without padding. The pass runs on at most
// `threads` threads, and on one where the work is small. The result does not
// depend on the number of threads. `kept`, if not null, keeps the packed
// weights for later calls; the weights must lie without gaps then. Throws
// std::bad_alloc.
template <class T>
void ComputeForward(const LayerForward<T>& layer, const PackedSequence& valid,
                    int threads, KeptWeights* kept = nullptr);
template <class T>
void ComputeBackward(const LayerBackward<T>& layer, const PackedSequence& valid,
                     int threads);

// Of each layer direction.
using PackedSequences = std::vector<PackedSequence>;

// Compute the passes of independent layer directions, such as the two
// directions of a layer. There are from 1 to kMaxTogether of them. They run
// side by side where that is faster. valid[d] belongs to layers[d], and so does
// kept[d] if `kept` is not null. In the backward pass all layer directions but
// the first may add to the x_grad of the first. Throw std::bad_alloc.
template <class T>
void ComputeForward(const std::vector<LayerForward<T>>& layers,
                    const PackedSequences& valid, int threads,
                    KeptWeights* kept = nullptr);
template <class T>
void ComputeBackward(const std::vector<LayerBackward<T>>& layers,
                     const PackedSequences& valid, int threads);

// Returns the number of threads to use, at most kMaxThreads. It is `configured`
// if that is positive, else the value of the environment variable
// TF_NUM_INTRAOP_THREADS if that is positive, else UsableProcessors(). The
// first call that needs the variable reads it for the whole process.
int ThreadCount(int configured);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_
