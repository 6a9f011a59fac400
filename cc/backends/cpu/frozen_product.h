// FrozenProduct: x W + bias with weights that do not change, packed once.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_FROZEN_PRODUCT_H_
#define TF_LSTM_OPS_BACKENDS_CPU_FROZEN_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "backends/cpu/engine.h"
#include "backends/cpu/memory/aligned_buffer.h"

namespace tf_lstm_ops::cpu {

class FrozenProduct {
 public:
  // Packs `weights` [depth, columns]. `bias` [columns] may be null, else it
  // must outlive the object. Throws std::bad_alloc.
  FrozenProduct(const float* weights, const float* bias, int64_t depth,
                int64_t columns);

  // Computes y [rows, columns] of x [rows, depth], on one thread where the work
  // is small. Thread-safe. It allocates nothing. With one thread it takes no
  // lock.
  void Run(const float* x, int64_t rows, float* y, int threads) const;

 private:
  PackedProduct product_;
  std::unique_ptr<AlignedBuffer> packed_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FROZEN_PRODUCT_H_
