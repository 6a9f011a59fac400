// ComputingMode: the floating-point mode of a call, whatever that of the caller
// is. Results are those of TensorFlow's threads and do not depend on the thread
// that calls.
#ifndef TF_LSTM_OPS_SESSION_COMPUTING_MODE_H_
#define TF_LSTM_OPS_SESSION_COMPUTING_MODE_H_

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace tf_lstm_ops::session {

// Sets the mode of the thread, and the caller's again at the end: denormal
// numbers are zero, results are rounded to nearest, nothing traps. States that
// decay to denormal numbers would slow a stream down. A thread of the team
// inherits the mode of the thread that starts it.
class ComputingMode {
 public:
  ComputingMode() : before_(Get()) {
    if (!IsSet()) Set(kMode);
  }
  ~ComputingMode() {
    if (!IsSet()) Set(before_);
  }
  ComputingMode(const ComputingMode&) = delete;
  ComputingMode& operator=(const ComputingMode&) = delete;

 private:
#if defined(__x86_64__) || defined(_M_X64)
  using Register = uint32_t;
  // Of MXCSR: flush to zero, all traps off, denormals are zero.
  static constexpr Register kMode = 0x8000 | 0x1F80 | 0x0040;
  static constexpr Register kControl = 0xFFC0;  // the others are results
  static Register Get() { return _mm_getcsr(); }
  static void Set(Register mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register kMode = 1 << 24;  // of FPCR: flush to zero
  static constexpr Register kControl = ~Register{0};
  static Register Get() {
    Register mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void Set(Register mode) {
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
  }
#else
  using Register = int;
  static constexpr Register kMode = 0, kControl = 0;
  static Register Get() { return 0; }
  static void Set(Register) {}
#endif

  // Whether the caller's mode is the same. To set it takes longer than to read
  // it.
  bool IsSet() const { return (before_ & kControl) == kMode; }

  const Register before_;
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_COMPUTING_MODE_H_
