// Opens mutated session files and computes those that the library accepts.
//
//   fuzz_file SEED FIRST COUNT MEMORY FILE...
//
// Mutation k depends on SEED and k only. The bytes lie before a page that
// cannot be read. MEMORY is the most address space in MiB; 0: any. Prints how
// many files were opened and computed.

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cinttypes>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "file_mutations.h"
#include "tf_lstm_ops.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

// Above it a file is not computed, so that a run stays short.
constexpr int64_t kMaxSize = 1 << 16;
constexpr size_t kPage = 4096, kAlignment = 64;
constexpr int64_t kBeyond = 16;  // floats behind an output
constexpr float kUntouched = 12345.0F;

uint64_t g_seed, g_number;  // of the mutation at hand

void PrintMutation() {
  char text[100];
  const int size = std::snprintf(text, sizeof(text),
                                 "seed %" PRIu64 ", mutation %" PRIu64 "\n",
                                 g_seed, g_number);
  if (write(STDERR_FILENO, text, size) < 0) std::_Exit(2);
}

#if !defined(__SANITIZE_ADDRESS__)
void OnSignal(int signal) {
  PrintMutation();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}
#endif

void Require(bool condition, const char* what) {
  if (condition) return;
  PrintMutation();
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

// A copy of bytes, before a page that cannot be accessed. It cannot be written.
class GuardedCopy {
 public:
  explicit GuardedCopy(const File& file) {
    const size_t room = (file.size() + kPage - 1) / kPage * kPage;
    mapped_ = room + kPage;
    void* map = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Require(map != MAP_FAILED, "memory of a file");
    map_ = static_cast<uint8_t*>(map);
    const size_t lines = (file.size() + kAlignment - 1) / kAlignment;
    data_ = map_ + room - lines * kAlignment;
    std::copy(file.begin(), file.end(), data_);
    mprotect(map_, room, PROT_READ);
    mprotect(map_ + room, kPage, PROT_NONE);
#if defined(__SANITIZE_ADDRESS__)
    // What is left of the last line.
    __asan_poison_memory_region(data_ + file.size(),
                                map_ + room - (data_ + file.size()));
#endif
  }
  ~GuardedCopy() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(map_, mapped_);
#endif
    munmap(map_, mapped_);
  }
  const void* data() const { return data_; }

 private:
  uint8_t* map_;
  uint8_t* data_;
  size_t mapped_;
};

tf_lstm_ops_error NewError() {
  tf_lstm_ops_error error = {};
  error.struct_size = sizeof(error);
  return error;
}

// Checks what a call returned. Returns whether it succeeded.
bool Succeeded(int32_t code, const tf_lstm_ops_error& error, int32_t allowed) {
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

void RunSequences(const tf_lstm_ops_session* session,
                  const tf_lstm_ops_session_info& info, Random* random) {
  const auto batch = static_cast<int64_t>(random->Below(4));
  const auto time = static_cast<int64_t>(random->Below(6));
  const Input x(batch * time * info.input_size, random);
  std::unique_ptr<uint8_t[]> mask;
  if (random->OneIn(2)) {
    mask.reset(new uint8_t[batch * time]);
    for (int64_t k = 0; k < batch * time; ++k) mask[k] = random->Below(3);
  }
  const int64_t count =
      batch * info.output_size * (info.returns_sequence ? time : 1);
  Output y(count);
  tf_lstm_ops_error error = NewError();
  const int32_t code = tf_lstm_ops_session_run(
      session, batch, time, x.data(), mask.get(), y.data(), count, &error);
  Succeeded(code, error, TF_LSTM_OPS_OK);
}

void RunStream(const tf_lstm_ops_session* session,
               const tf_lstm_ops_session_info& info, Random* random) {
  const auto batch = static_cast<int64_t>(1 + random->Below(3));
  tf_lstm_ops_stream* stream = nullptr;
  tf_lstm_ops_error error = NewError();
  // A session that cannot stream must be refused.
  if (!Succeeded(
          tf_lstm_ops_stream_open(session, batch, &stream, &error), error,
          info.can_stream ? TF_LSTM_OPS_OK : TF_LSTM_OPS_INVALID_ARGUMENT)) {
    return;
  }
  Require(info.can_stream, "a stream of a session that cannot stream");
  for (int call = 0; call < 3; ++call) {
    const auto steps = static_cast<int64_t>(1 + random->Below(5));
    const int64_t x_count = batch * steps * info.input_size;
    const int64_t y_count =
        batch * info.output_size * (info.returns_sequence ? steps : 1);
    const Input x(x_count, random);
    Output y(y_count);
    const int32_t code = tf_lstm_ops_stream_run(
        stream, steps, x.data(), x_count, y.data(), y_count, &error);
    Succeeded(code, error, TF_LSTM_OPS_OK);
    Output state(batch * info.state_size);
    Succeeded(tf_lstm_ops_stream_get_state(stream, state.data(),
                                           batch * info.state_size, &error),
              error, TF_LSTM_OPS_OK);
    Succeeded(tf_lstm_ops_stream_set_state(stream, state.data(),
                                           batch * info.state_size, &error),
              error, TF_LSTM_OPS_OK);
    const auto row = static_cast<int64_t>(random->Below(batch));
    Succeeded(tf_lstm_ops_stream_reset(stream, &row, 1, &error), error,
              TF_LSTM_OPS_OK);
  }
  tf_lstm_ops_stream_close(stream);
}

struct Counts {
  uint64_t opened = 0, computed = 0;
};

void Open(const File& file, Random* random, Counts* counts) {
  const GuardedCopy copy(file);
  tf_lstm_ops_session_options options = {};
  options.struct_size = sizeof(options);
  options.threads = static_cast<int32_t>(1 + random->Below(2));
  tf_lstm_ops_session* session = nullptr;
  tf_lstm_ops_error error = NewError();
  const int32_t code = tf_lstm_ops_session_open_data(
      copy.data(), file.size(), &options, &session, &error);
  const bool is_later = code == TF_LSTM_OPS_UNIMPLEMENTED;
  if (!Succeeded(code, error, is_later ? code : TF_LSTM_OPS_DATA_LOSS)) {
    Require(!session, "no session of a failed call");
    return;
  }
  ++counts->opened;
  tf_lstm_ops_session_info info = {};
  info.struct_size = sizeof(info);
  Require(!tf_lstm_ops_session_get_info(session, &info, &error), "info");
  if (std::max({info.input_size, info.output_size, info.state_size}) <=
      kMaxSize) {
    ++counts->computed;
    RunSequences(session, info, random);
    RunStream(session, info, random);
  }
  tf_lstm_ops_session_close(session);
}

File Read(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  return File(std::istreambuf_iterator<char>(stream), {});
}

void LimitMemory(uint64_t mebibytes) {
  if (mebibytes == 0) return;
  const rlimit limit = {mebibytes << 20, mebibytes << 20};
  Require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: fuzz_file SEED FIRST COUNT MEMORY FILE...\n");
    return 2;
  }
  uint64_t numbers[4];
  for (int k = 0; k < 4; ++k) {
    numbers[k] = std::strtoull(argv[1 + k], nullptr, 10);
  }
  g_seed = numbers[0];
  std::vector<File> files;
  for (int k = 5; k < argc; ++k) files.push_back(Read(argv[k]));
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(PrintMutation);
#else
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) {
    std::signal(signal, OnSignal);
  }
#endif
  LimitMemory(numbers[3]);
  Counts counts;
  for (g_number = numbers[1]; g_number < numbers[1] + numbers[2]; ++g_number) {
    // Far apart, since the state of the generator counts upwards.
    Mutator mutator(files, (g_seed << 32) ^ (g_number * 0xD1342543DE82EF95));
    const File file = mutator.Mutate();
    Open(file, &mutator.random(), &counts);
  }
  std::printf("%" PRIu64 " opened %" PRIu64 " computed\n", counts.opened,
              counts.computed);
  return 0;
}
