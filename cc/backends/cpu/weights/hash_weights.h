// HashWeights: a hash of all weights of a call, by which it finds them packed.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_HASH_WEIGHTS_H_
#define TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_HASH_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/weights/weights_hash.h"

namespace tf_lstm_ops::cpu {

// An array of weights without gaps.
struct WeightBytes {
  const void* data;
  size_t size;
};

// Returns a hash of all bytes of the arrays. Other arrays of the same sizes
// have the same hash with a probability of about 2^-64, whatever they are: its
// key is drawn for the process. It does not depend on `threads`, the largest
// number of threads to use. Throws std::bad_alloc, and std::runtime_error where
// the system has no random numbers for the key.
WeightsHash HashWeights(const WeightBytes* arrays, int count, int threads);

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_WEIGHTS_HASH_WEIGHTS_H_
