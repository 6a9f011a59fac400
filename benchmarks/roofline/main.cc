// Prints the roofline of one instruction set, the one that this file is
// compiled for: the float operations per second, then for each size in bytes
// the bytes per second.
//
// usage: roofline THREADS [BYTES ...]
#include <cstdio>
#include <cstdlib>

#include "backends/cpu/simd/vector/measured_loops.h"
#include "roofline.h"

int main(int argc, char** argv) {
  namespace simd = tf_lstm_ops::TF_LSTM_OPS_SIMD;
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  std::printf("%.17g\n", roofline::MeasureFlops(&simd::MultiplyAdd, threads));
  for (int k = 2; k < argc; ++k) {
    std::printf("%.17g\n", roofline::MeasureReadBandwidth(
                               &simd::Sum, std::atoll(argv[k]), threads));
  }
}
