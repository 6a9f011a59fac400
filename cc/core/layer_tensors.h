// Views of the tensors of a layer direction. Device code includes this header.
// No view owns its memory.
#ifndef TF_LSTM_OPS_CORE_LAYER_TENSORS_H_
#define TF_LSTM_OPS_CORE_LAYER_TENSORS_H_

#include <cstdint>

#include "core/macros.h"

namespace tf_lstm_ops {

struct BFloat16;

// BFloat16, const if T is const.
template <class T>
struct BFloat16Like {
  using Type = BFloat16;
};
template <class T>
struct BFloat16Like<const T> {
  using Type = const BFloat16;
};

// A state [B, P] or [B, H]: row b is at data + b * stride. A null input reads
// as zeros. A null output is not written.
template <class T>
struct States {
  T* data = nullptr;
  int64_t stride = 0;
};

// Dropout multipliers of the gate in block g, row b of the batch and column k:
// data[Index(g, b, k)]. They are the same in every step ("variational"
// dropout). Null means no dropout.
template <class T>
struct Multipliers {
  const T* data = nullptr;
  int64_t gate_stride = 0;  // 0: all gates share one set
  int64_t row_stride = 0;
  int64_t column_stride = 0;

  TF_LSTM_OPS_DEVICE int64_t Index(int64_t g, int64_t b, int64_t k) const {
    return g * gate_stride + b * row_stride + k * column_stride;
  }
  // The number of different sets of multipliers that `gates` gates use.
  TF_LSTM_OPS_DEVICE int sets(int gates) const {
    return data != nullptr && gate_stride != 0 ? gates : 1;
  }
};

// Activations that a forward pass saves for the backward pass, numbered by the
// cell (LstmSaved, GruSaved). Activation k of a step has H elements from
// data[k] + row * stride[k] on. `row` is the packed row with by_packed_row,
// else the output row. An activation without data is not saved.
constexpr int kMaxSavedActivations = 6;
template <class T>
struct SavedActivations {
  T* data[kMaxSavedActivations] = {};
  int64_t stride[kMaxSavedActivations] = {};
  bool by_packed_row = false;
  // Set in place of `data` where T is float and the activations are stored as
  // bfloat16. Of the backends only the CPU engine reads this member.
  typename BFloat16Like<T>::Type* bfloat16[kMaxSavedActivations] = {};

  TF_LSTM_OPS_DEVICE bool Has(int k) const { return data[k] || bfloat16[k]; }
  // Calls f with a pointer to element u of activation k of packed row e, whose
  // output row is `output`. The pointer is a BFloat16* if bfloat16[k] is set,
  // else a T*. The activation must be saved.
  template <class F>
  TF_LSTM_OPS_INLINE void Rows(int k, const F& f) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      if (bfloat16[k]) return f(bfloat16[k]);
    }
    if (data[k]) f(data[k]);
  }
  TF_LSTM_OPS_INLINE int64_t Offset(int k, int64_t e, int64_t output) const {
    return (by_packed_row ? e : output) * stride[k];
  }
  template <class F>
  TF_LSTM_OPS_INLINE auto At(int k, int64_t e, int64_t output, int64_t u,
                             const F& f) const {
    const int64_t at = Offset(k, e, output) + u;
    if constexpr (sizeof(T) == sizeof(float)) {
      if (bfloat16[k]) return f(bfloat16[k] + at);
    }
    return f(data[k] + at);
  }
  // `rows` is a T*, or a BFloat16* if T is float.
  template <class E>
  TF_LSTM_OPS_DEVICE void Set(int k, E* rows, int64_t row_stride) {
    if constexpr (sizeof(E) < sizeof(T)) {
      bfloat16[k] = rows;
    } else {
      data[k] = rows;
    }
    stride[k] = row_stride;
  }
};

// The output of a masked step.
enum class Fill : uint8_t {
  kNothing,   // the output is not written
  kZero,      // zeros
  kPrevious,  // the output of the preceding valid step, zeros if there is none
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_LAYER_TENSORS_H_
