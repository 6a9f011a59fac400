// Many threads use one session, for ThreadSanitizer.
//
//   thread_use FILE THREADS
//
// Each thread computes sequences and steps of streams of its own, and opens
// and closes streams and other sessions of the file meanwhile. All results must
// have the bits of the first. Then all threads use one stream: a call succeeds
// or fails with FAILED_PRECONDITION. Prints how many calls failed so.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "call_arrays.h"
#include "tf_lstm_ops.h"

namespace {

constexpr int kUsers = 6, kRounds = 8;
constexpr int64_t kBatch = 3, kSteps = 9;

using Outputs = std::vector<std::vector<float>>;

void Check(int32_t code) {
  if (code == TF_LSTM_OPS_OK) return;
  std::fprintf(stderr, "a call failed: %s\n", tf_lstm_ops_code_text(code));
  std::_Exit(1);
}

tf_lstm_ops_session* Open(const char* path, int threads) {
  tf_lstm_ops_session_options options = {};
  options.struct_size = sizeof(options);
  options.threads = threads;
  tf_lstm_ops_session* session = nullptr;
  Check(tf_lstm_ops_session_open(path, &options, &session, nullptr));
  return session;
}

// The arrays of a call.
CallArrays NewArrays(const tf_lstm_ops_session* session) {
  tf_lstm_ops_session_info info = {};
  info.struct_size = sizeof(info);
  Check(tf_lstm_ops_session_get_info(session, &info, nullptr));
  int32_t code;
  CallArrays arrays(session, info, kBatch, kSteps, &code);
  Check(code);
  return arrays;
}

int64_t StateSize(const tf_lstm_ops_session* session) {
  tf_lstm_ops_session_info info = {};
  info.struct_size = sizeof(info);
  Check(tf_lstm_ops_session_get_info(session, &info, nullptr));
  return kBatch * info.state_size;
}

Outputs Sequence(const tf_lstm_ops_session* session) {
  CallArrays arrays = NewArrays(session);
  Check(arrays.Run(session, false, nullptr));
  return arrays.Outputs();
}

Outputs Stream(const tf_lstm_ops_session* session) {
  CallArrays arrays = NewArrays(session);
  tf_lstm_ops_stream* stream = nullptr;
  Check(tf_lstm_ops_stream_open(session, kBatch, &stream, nullptr));
  Check(arrays.Run(stream, nullptr));
  tf_lstm_ops_stream_close(stream);
  return arrays.Outputs();
}

// Runs f in kUsers threads.
template <class F>
void InThreads(const F& f) {
  std::vector<std::thread> users;
  users.reserve(kUsers);
  for (int user = 0; user < kUsers; ++user) users.emplace_back(f, user);
  for (std::thread& user : users) user.join();
}

void CheckBits(const Outputs& found, const Outputs& wanted) {
  for (size_t k = 0; k < wanted.size(); ++k) {
    const size_t bytes = wanted[k].size() * sizeof(float);
    if (!std::memcmp(found[k].data(), wanted[k].data(), bytes)) continue;
    std::fprintf(stderr, "other bits in another thread\n");
    std::_Exit(1);
  }
}

// Uses a stream. Returns whether another thread used it.
bool UseShared(tf_lstm_ops_stream* stream, int round, CallArrays* arrays,
               std::vector<float>* states) {
  const auto size = static_cast<int64_t>(states->size());
  float* state = states->data();
  int32_t code = TF_LSTM_OPS_OK;
  switch (round % 4) {
    case 0:
      code = tf_lstm_ops_stream_get_state(stream, state, size, nullptr);
      break;
    case 1:
      code = tf_lstm_ops_stream_reset(stream, nullptr, 0, nullptr);
      break;
    case 2:
      code = tf_lstm_ops_stream_set_state(stream, state, size, nullptr);
      break;
    default:
      code = arrays->Run(stream, nullptr);
  }
  if (code == TF_LSTM_OPS_FAILED_PRECONDITION) return true;
  Check(code);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: thread_use FILE THREADS\n");
    return 2;
  }
  const char* path = argv[1];
  tf_lstm_ops_session* session = Open(path, std::atoi(argv[2]));
  const Outputs wanted = Sequence(session);
  InThreads([&](int user) {
    for (int round = 0; round < kRounds; ++round) {
      CheckBits(Sequence(session), wanted);
      CheckBits(Stream(session), wanted);
      if ((user + round) % 3 != 0) continue;
      tf_lstm_ops_session* other = Open(path, 1 + user % 2);
      CheckBits(Stream(other), wanted);
      tf_lstm_ops_session_close(other);
    }
  });
  tf_lstm_ops_stream* shared = nullptr;
  Check(tf_lstm_ops_stream_open(session, kBatch, &shared, nullptr));
  std::atomic<int> refused{0};
  InThreads([&](int user) {
    CallArrays arrays = NewArrays(session);
    std::vector<float> states(StateSize(session));
    for (int round = 0; round < 50 * kRounds; ++round) {
      if (UseShared(shared, user + round, &arrays, &states)) ++refused;
    }
  });
  tf_lstm_ops_stream_close(shared);
  tf_lstm_ops_session_close(session);
  std::printf("%d refused\n", refused.load());
  return 0;
}
