// Staging: converts a call's tensors to the type in which the engine computes.
//
// float and double tensors are used in place. Half and BFloat16 tensors are
// converted to float before the computation, and results are rounded after it.
// BFloat16 weights and saved activations are not converted, see Weights and
// SavedIn.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_STAGING_H_
#define TF_LSTM_OPS_BACKENDS_CPU_STAGING_H_

#include <memory>
#include <type_traits>
#include <vector>

#include "backends/cpu/engine.h"
#include "backends/cpu/memory/aligned_buffer.h"
#include "backends/cpu/plan/cost.h"
#include "backends/cpu/team/thread_team.h"
#include "core/float16.h"
#include "core/layer_direction.h"

namespace tf_lstm_ops::cpu {

// Conversions y[k] = x[k] of n elements, by the instruction set in use.
inline void Widen(const Half* x, float* y, int64_t n) {
  SelectedInstructionSet().engine->widen_half(x, y, n);
}
inline void Widen(const BFloat16* x, float* y, int64_t n) {
  SelectedInstructionSet().engine->widen_bfloat16(x, y, n);
}
inline void Narrow(const float* x, Half* y, int64_t n) {
  SelectedInstructionSet().engine->narrow_half(x, y, n);
}
inline void Narrow(const float* x, BFloat16* y, int64_t n) {
  SelectedInstructionSet().engine->narrow_bfloat16(x, y, n);
}

// Calls convert(begin, size) for parts of n elements, on several threads where
// that is faster.
template <class F>
void ConvertParts(int64_t n, int threads, const F& convert) {
  constexpr int64_t kPart = int64_t{1} << 15;
  if (n <= kPart) return convert(0, n);
  const int64_t items = CeilDiv(n, kPart);
  const auto bytes = static_cast<double>(n) * (sizeof(Half) + sizeof(float));
  const Rates rates;
  const double time = StreamTime(rates, TheCaches(), bytes);
  RunItems(items, ThreadsOfPhase(rates, time, items, threads),
           [&](int64_t item, int) {
             const int64_t begin = item * kPart;
             convert(begin, Min(kPart, n - begin));
           });
}

// T is the element type of the tensors. Up to `threads` threads convert them.
// Converted copies live as long as this object. Throws std::bad_alloc.
template <class T>
class Staging {
 public:
  explicit Staging(int threads) : threads_(threads) {}

  using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr bool kConverts = !std::is_same_v<T, Compute>;
  static constexpr bool kIsBFloat16 = std::is_same_v<T, BFloat16>;
  // The type of saved activations; see SavedActivations::bfloat16.
  using Saved = std::conditional_t<kIsBFloat16, BFloat16, Compute>;

  // Returns `size` elements of `data` to read. Null stays null.
  const Compute* In(const T* data, int64_t size) {
    if constexpr (kConverts) {
      if (data == nullptr) return nullptr;
      Compute* copy = Scratch(size);
      ConvertParts(size, threads_, [&](int64_t begin, int64_t count) {
        Widen(data + begin, copy + begin, count);
      });
      return copy;
    } else {
      return data;
    }
  }

  // Returns a view of weight matrices of `size` elements in total.
  // lay_out(data) makes the view. The engine reads bfloat16 weights without
  // conversion.
  template <class F>
  GateMatrices<const Compute> Weights(const T* data, int64_t size,
                                      const F& lay_out) {
    if constexpr (kIsBFloat16) {
      const GateMatrices<const T> m = lay_out(data);
      return {nullptr, m.row_stride, m.column_stride, m.gate_stride, m.data};
    } else {
      return lay_out(In(data, size));
    }
  }

  // Returns `size` elements to write. Finish copies them to `data`. Null stays
  // null.
  Compute* Out(T* data, int64_t size) {
    if constexpr (kConverts) {
      if (data == nullptr) return nullptr;
      outputs_.push_back({Scratch(size), data, size});
      return outputs_.back().from;
    } else {
      return data;
    }
  }

  // The same for saved activations. The engine reads and writes bfloat16 ones
  // without conversion.
  const Saved* SavedIn(const T* data, int64_t size) {
    if constexpr (kIsBFloat16)
      return data;
    else
      return In(data, size);
  }
  Saved* SavedOut(T* data, int64_t size) {
    if constexpr (kIsBFloat16)
      return data;
    else
      return Out(data, size);
  }

  // Returns `size` uninitialised elements.
  Compute* Scratch(int64_t size) {
    buffers_.push_back(std::make_unique<AlignedBuffer>(size * sizeof(Compute)));
    return static_cast<Compute*>(buffers_.back()->data());
  }

  // Rounds the outputs to their type. Call it after the computation.
  void Finish() {
    if constexpr (kConverts) {
      for (const Output& output : outputs_) {
        ConvertParts(output.size, threads_, [&](int64_t begin, int64_t count) {
          Narrow(output.from + begin, output.to + begin, count);
        });
      }
    }
  }

 private:
  struct Output {
    Compute* from;
    T* to;
    int64_t size;
  };
  const int threads_;
  std::vector<std::unique_ptr<AlignedBuffer>> buffers_;
  std::vector<Output> outputs_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_STAGING_H_
