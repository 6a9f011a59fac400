// What the calls of fuzz_file.cc share: checks, and arrays of calls.
#ifndef TF_LSTM_OPS_TESTS_SESSION_FUZZ_CHECKS_H_
#define TF_LSTM_OPS_TESTS_SESSION_FUZZ_CHECKS_H_

#include <unistd.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "file_mutations.h"
#include "tf_lstm_ops.h"

constexpr int64_t kBeyond = 16;  // floats behind an output
constexpr float kUntouched = 12345.0F;

inline uint64_t g_seed, g_number;  // of the mutation at hand

inline void PrintMutation() {
  char text[100];
  const int size = std::snprintf(text, sizeof(text),
                                 "seed %" PRIu64 ", mutation %" PRIu64 "\n",
                                 g_seed, g_number);
  if (write(STDERR_FILENO, text, size) < 0) std::_Exit(2);
}

inline void Require(bool condition, const char* what) {
  if (condition) return;
  PrintMutation();
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

inline tf_lstm_ops_error NewError() {
  tf_lstm_ops_error error = {};
  error.struct_size = sizeof(error);
  return error;
}

// Checks what a call returned. Returns whether it succeeded.
inline bool Succeeded(int32_t code, const tf_lstm_ops_error& error,
                      int32_t allowed) {
  if (code == TF_LSTM_OPS_OK) return true;
  Require(code == allowed || code == TF_LSTM_OPS_RESOURCE_EXHAUSTED,
          error.text);
  Require(error.code == code, "the code in the error");
  Require(error.text[0] != 0, "a text of the error");
  Require(std::memchr(error.text, 0, sizeof(error.text)), "end of the text");
  return false;
}

// An array of a call, of just this size so that AddressSanitizer sees its end.
class Input {
 public:
  Input(int64_t count, Random* random) : values_(new float[count]) {
    for (int64_t k = 0; k < count; ++k) {
      values_[k] = static_cast<float>(random->Below(2001)) / 1000 - 1;
      if (random->OneIn(200)) values_[k] = HUGE_VALF;
      if (random->OneIn(200)) values_[k] = NAN;
    }
  }
  const float* data() const { return values_.get(); }

 private:
  std::unique_ptr<float[]> values_;
};

class Output {
 public:
  explicit Output(int64_t count)
      : count_(count), values_(count + kBeyond, kUntouched) {}
  ~Output() {
    for (int64_t k = 0; k < kBeyond; ++k) {
      Require(values_[count_ + k] == kUntouched, "a write behind an output");
    }
  }
  float* data() { return values_.data(); }

 private:
  const int64_t count_;
  std::vector<float> values_;
};

#endif  // TF_LSTM_OPS_TESTS_SESSION_FUZZ_CHECKS_H_
