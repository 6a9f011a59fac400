// Results do not depend on the floating-point mode of the caller, and calls do
// not change it.
//
//   floating_point_modes FILE THREADS
//
// Inputs are so small that most products are denormal numbers.

#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tf_lstm_ops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

constexpr int64_t kBatch = 2, kSteps = 9;

using Floats = std::vector<float>;

void Check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

// The outputs of a session and of a stream, which are opened in this mode.
Floats Compute(const char* path, int threads) {
  tf_lstm_ops_session_options options = {};
  options.struct_size = sizeof(options);
  options.threads = threads;
  tf_lstm_ops_session* session = nullptr;
  Check(!tf_lstm_ops_session_open(path, &options, &session, nullptr), "open");
  tf_lstm_ops_session_info info = {};
  info.struct_size = sizeof(info);
  Check(!tf_lstm_ops_session_get_info(session, &info, nullptr), "info");
  Floats x(kBatch * kSteps * info.input_size);
  for (size_t k = 0; k < x.size(); ++k) {
    const uint32_t bits = 0x00800000 + static_cast<uint32_t>(k * 123457);
    std::memcpy(&x[k], &bits, sizeof(bits));  // without rounding
  }
  const int64_t count =
      kBatch * (info.returns_sequence ? kSteps : 1) * info.output_size;
  Floats y(2 * count);
  Check(!tf_lstm_ops_session_run(session, kBatch, kSteps, x.data(), nullptr,
                                 y.data(), count, nullptr),
        "run");
  tf_lstm_ops_stream* stream = nullptr;
  Check(!tf_lstm_ops_stream_open(session, kBatch, &stream, nullptr), "stream");
  Check(!tf_lstm_ops_stream_run(stream, kSteps, x.data(),
                                kBatch * kSteps * info.input_size,
                                y.data() + count, count, nullptr),
        "run of a stream");
  tf_lstm_ops_stream_close(stream);
  tf_lstm_ops_session_close(session);
  return y;
}

// `name` is that of the mode, which is set.
void Compare(const char* path, int threads, const Floats& wanted,
             const char* name) {
  fenv_t before, after;
  std::memset(&before, 0, sizeof(before));
  std::memset(&after, 0, sizeof(after));
  fegetenv(&before);
  const Floats found = Compute(path, threads);
  fegetenv(&after);
  Check(!std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)),
        name);
#if defined(__x86_64__)
  Check(before.__mxcsr >> 6 == after.__mxcsr >> 6, "the caller's mode");
#else
  Check(!std::memcmp(&before, &after, sizeof(before)), "the caller's mode");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: floating_point_modes FILE THREADS\n");
    return 2;
  }
  const char* path = argv[1];
  const int threads = std::atoi(argv[2]);
  const Floats wanted = Compute(path, threads);
  for (const int rounding :
       {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    fesetround(rounding);
    Compare(path, threads, wanted, "the bits in a rounding mode");
  }
  fesetround(FE_TONEAREST);
#if defined(__x86_64__)
  for (const uint32_t denormals : {0x8000, 0x0040, 0x8040}) {
    const uint32_t mode = _mm_getcsr();
    _mm_setcsr(mode | denormals);
    Compare(path, threads, wanted, "the bits where denormal numbers are zero");
    _mm_setcsr(mode);
  }
#endif
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_DIVBYZERO);
  Compare(path, threads, wanted, "the bits with traps");
  std::printf("same bits\n");
  return 0;
}
