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

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "file_mutations.h"
#include "fuzz_arrays.h"
#include "fuzz_checks.h"
#include "tf_lstm_ops.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

// Above these elements of an array a file is not computed, so that a run stays
// short. A stream computes blocks of many steps when it is opened.
constexpr int64_t kMaxSize = 1 << 16, kMaxStep = 1 << 12;
constexpr size_t kPage = 4096, kAlignment = 64;

#if !defined(__SANITIZE_ADDRESS__)
void OnSignal(int signal) {
  PrintMutation();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}
#endif

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

// What the calls of one input and one output may return.
int32_t AllowedOf(const File& file) {
  return Layout(file).is_graph ? TF_LSTM_OPS_INVALID_ARGUMENT : TF_LSTM_OPS_OK;
}

void RunSequences(const tf_lstm_ops_session* session,
                  const tf_lstm_ops_session_info& info, int32_t allowed,
                  Random* random) {
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
  Succeeded(code, error, allowed);
}

void RunSteps(const tf_lstm_ops_session_info& info, int32_t allowed,
              tf_lstm_ops_stream* stream, int64_t batch, Random* random) {
  const auto steps = static_cast<int64_t>(1 + random->Below(5));
  const int64_t x_count = batch * steps * info.input_size;
  const int64_t y_count =
      batch * info.output_size * (info.returns_sequence ? steps : 1);
  const Input x(x_count, random);
  Output y(y_count);
  tf_lstm_ops_error error = NewError();
  const int32_t code = tf_lstm_ops_stream_run(stream, steps, x.data(), x_count,
                                              y.data(), y_count, &error);
  Succeeded(code, error, allowed);
}

void ChangeStates(const tf_lstm_ops_session_info& info,
                  tf_lstm_ops_stream* stream, int64_t batch, Random* random) {
  tf_lstm_ops_error error = NewError();
  const int64_t count = batch * info.state_size;
  Output state(count);
  Succeeded(tf_lstm_ops_stream_get_state(stream, state.data(), count, &error),
            error, TF_LSTM_OPS_OK);
  Succeeded(tf_lstm_ops_stream_set_state(stream, state.data(), count, &error),
            error, TF_LSTM_OPS_OK);
  const auto row = static_cast<int64_t>(random->Below(batch));
  Succeeded(tf_lstm_ops_stream_reset(stream, &row, 1, &error), error,
            TF_LSTM_OPS_OK);
}

void RunStream(const tf_lstm_ops_session* session, const File& file,
               const tf_lstm_ops_session_info& info, Random* random) {
  const auto batch = static_cast<int64_t>(1 + random->Below(3));
  const CallInputs step(session, info.input_count, batch, 1, random);
  if (info.can_stream && LargestValue(file, step) > kMaxStep) return;
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
    RunSteps(info, AllowedOf(file), stream, batch, random);
    RunStreamArrays(session, info, stream, batch, random);
    ChangeStates(info, stream, batch, random);
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
    const bool ran = RunArrays(session, file, info, kMaxSize, random);
    counts->computed += ran;
    // With shapes that are not those of RunArrays, but of their size.
    if (ran) RunSequences(session, info, AllowedOf(file), random);
    RunStream(session, file, info, random);
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
