#include "backends/cpu/processor/int8_dots.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tf_lstm_ops::cpu {

#if defined(__x86_64__)

// The caller has found that the processor and the system have vectors of this
// size.
bool HasInt8Dots(int vector_bytes) {
  constexpr unsigned kAvx512Vnni = 1U << 11;
  constexpr unsigned kAvxVnni = 1U << 4;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (vector_bytes == 64) {
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & kAvx512Vnni) != 0;
  }
  if (vector_bytes == 32) {
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kAvxVnni) != 0;
  }
  return false;
}

#elif defined(__aarch64__) && defined(__linux__)

bool HasInt8Dots(int) {
  constexpr unsigned long kHasDots = 1UL << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kHasDots) != 0;
}

#elif defined(__aarch64__) && defined(__APPLE__)

bool HasInt8Dots(int) { return true; }  // since the M1, the oldest one

#else

bool HasInt8Dots(int) { return false; }

#endif

}  // namespace tf_lstm_ops::cpu
