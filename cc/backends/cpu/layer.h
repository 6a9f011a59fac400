// The CPU backend's entry points: the passes of one layer direction.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_
#define TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_

#include <vector>

#include "backends/cpu/packed_weights.h"
#include "core/layer_direction.h"
#include "core/packed_sequence.h"

namespace tf_lstm_ops::cpu {

// A forward or backward pass. T is float or double. `packed` lists the valid
// steps; its input and output rows may differ from those of layer.sequence
// where the caller stores rows without padding. Runs on at most `threads`
// threads, on fewer where the work is small; the result does not depend on
// their number. `weights` keeps the packed weights for further calls, or is
// null. Throws std::bad_alloc.
template <class T>
void ComputeForward(const LayerForward<T>& layer, const PackedSequence& packed,
                    int threads, PackedWeights* weights = nullptr);
template <class T>
void ComputeBackward(const LayerBackward<T>& layer,
                     const PackedSequence& packed, int threads);

// The passes of independent layer directions, at most kMaxTogether, such as the
// two directions of a layer: side by side where that is faster. packed[d]
// belongs to layers[d]. In the backward pass all layers but the first may add
// to the first one's x_grad.
constexpr int kMaxTogether = 2;
template <class T>
void ComputeForward(const std::vector<LayerForward<T>>& layers,
                    const std::vector<PackedSequence>& packed, int threads);
template <class T>
void ComputeBackward(const std::vector<LayerBackward<T>>& layers,
                     const std::vector<PackedSequence>& packed, int threads);

// Returns `configured`. Where that is 0, returns the value of the environment
// variable TF_NUM_INTRAOP_THREADS, else the number of processors that the
// process may use.
int ThreadCount(int configured);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_LAYER_H_
