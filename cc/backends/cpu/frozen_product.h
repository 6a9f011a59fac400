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
  // Packs `weights` [depth, columns], of one gate. `bias` [columns] may be
  // null, else it must outlive the object. Throws std::bad_alloc.
  FrozenProduct(const GateMatrices<const float>& weights, const float* bias,
                int64_t depth, int64_t columns);

  // Computes `rows` rows of y, y_stride apart, on this thread. x[r] is a row of
  // `depth` elements, which may overlap others. `scratch` has
  // rows * scratch_floats() elements. The bits of a row do not depend on the
  // others. Thread-safe. It allocates nothing and takes no lock.
  void Run(const float* const* x, int64_t rows, float* y, int64_t y_stride,
           float* scratch) const {
    run_(product_, x, rows, y, y_stride, scratch);
  }

  int64_t depth() const { return product_.depth; }
  int64_t columns() const { return product_.columns; }
  // Elements of scratch memory for a row.
  int64_t scratch_floats() const;
  // Predicted nanoseconds of a row, for the number of threads.
  double row_time() const { return row_time_; }

 private:
  PackedProduct product_;
  std::unique_ptr<AlignedBuffer> packed_;
  decltype(Engine::run_product) run_;
  bool rounds_;  // whether rows of x are rounded for the products
  double row_time_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_FROZEN_PRODUCT_H_
