// FirstUse: a value that the first use computes.
//
// A static variable of a function would have a lock: in a child that is forked
// while another thread computes the value, every use would wait for ever. Here
// threads that find no value compute one each, and the first one stays.
#ifndef TF_LSTM_OPS_BACKENDS_CPU_MEMORY_FIRST_USE_H_
#define TF_LSTM_OPS_BACKENDS_CPU_MEMORY_FIRST_USE_H_

#include <atomic>
#include <memory>

namespace tf_lstm_ops {

// A global variable, initialised before any code runs. The value is never
// freed: at exit other threads may still use it.
template <class T>
class FirstUse {
 public:
  constexpr FirstUse() = default;

  // Returns the value, which is compute() of the first call. Throws what
  // compute() throws, and std::bad_alloc.
  template <class Compute>
  T& Get(const Compute& compute) {
    T* value = value_.load(std::memory_order_acquire);
    if (value != nullptr) return *value;
    std::unique_ptr<T> computed = compute();
    if (!value_.compare_exchange_strong(value, computed.get())) return *value;
    return *computed.release();
  }

  // In a forked child: the next use computes the value again.
  void Forget() { value_.store(nullptr); }

 private:
  std::atomic<T*> value_{nullptr};
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_BACKENDS_CPU_MEMORY_FIRST_USE_H_
