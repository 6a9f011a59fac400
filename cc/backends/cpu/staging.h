// Staging: the memory of tensors in the type that the engine computes in.
//
// float and double are used where they lie. Half and BFloat16 are converted to
// float on the way in and rounded on the way out, so that everything between is
// float.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_STAGING_H_
#define TF_LSTM_OPS_BACKENDS_CPU_STAGING_H_

#include <memory>
#include <type_traits>
#include <vector>

#include "backends/cpu/aligned_buffer.h"
#include "core/float16.h"

namespace tf_lstm_ops::cpu {

template <class T>
class Staging {
 public:
  using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;
  static constexpr bool kConverts = !std::is_same_v<T, Compute>;

  // `size` numbers to read. Null stays null.
  const Compute* In(const T* data, int64_t size) {
    if constexpr (kConverts) {
      if (data == nullptr) return nullptr;
      Compute* copy = Scratch(size);
      for (int64_t k = 0; k < size; ++k) copy[k] = data[k].ToFloat();
      return copy;
    } else {
      return data;
    }
  }

  // `size` numbers to write; they reach `data` with Finish. Null stays null.
  Compute* Out(T* data, int64_t size) {
    if constexpr (kConverts) {
      if (data == nullptr) return nullptr;
      outputs_.push_back({Scratch(size), data, size});
      return outputs_.back().from;
    } else {
      return data;
    }
  }

  // `size` numbers that live as long as this object.
  Compute* Scratch(int64_t size) {
    buffers_.push_back(std::make_unique<AlignedBuffer>(size * sizeof(Compute)));
    return static_cast<Compute*>(buffers_.back()->data());
  }

  void Finish() {
    if constexpr (kConverts) {
      for (const Output& output : outputs_) {
        for (int64_t k = 0; k < output.size; ++k) {
          output.to[k] = T::FromFloat(output.from[k]);
        }
      }
    }
  }

 private:
  struct Output {
    Compute* from;
    T* to;
    int64_t size;
  };
  std::vector<std::unique_ptr<AlignedBuffer>> buffers_;
  std::vector<Output> outputs_;
};

}  // namespace tf_lstm_ops::cpu

#endif  // TF_LSTM_OPS_BACKENDS_CPU_STAGING_H_
