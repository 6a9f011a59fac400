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

#include "tf_lstm_ops.h"

namespace {

constexpr int kUsers = 6, kRounds = 8;
constexpr int64_t kBatch = 3, kSteps = 9;

using Floats = std::vector<float>;

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
struct Arrays {
  explicit Arrays(const tf_lstm_ops_session* session) {
    tf_lstm_ops_session_info info = {};
    info.struct_size = sizeof(info);
    Check(tf_lstm_ops_session_get_info(session, &info, nullptr));
    x.resize(kBatch * kSteps * info.input_size);
    for (size_t k = 0; k < x.size(); ++k)
      x[k] = static_cast<float>(k * 7 % 13) / 13;
    y.resize(kBatch * (info.returns_sequence ? kSteps : 1) * info.output_size);
    state.resize(kBatch * info.state_size);
  }
  int64_t x_count() const { return static_cast<int64_t>(x.size()); }
  int64_t y_count() const { return static_cast<int64_t>(y.size()); }
  Floats x, y, state;
};

Floats Sequence(const tf_lstm_ops_session* session) {
  Arrays a(session);
  Check(tf_lstm_ops_session_run(session, kBatch, kSteps, a.x.data(), nullptr,
                                a.y.data(), a.y_count(), nullptr));
  return a.y;
}

Floats Stream(const tf_lstm_ops_session* session) {
  Arrays a(session);
  tf_lstm_ops_stream* stream = nullptr;
  Check(tf_lstm_ops_stream_open(session, kBatch, &stream, nullptr));
  Check(tf_lstm_ops_stream_run(stream, kSteps, a.x.data(), a.x_count(),
                               a.y.data(), a.y_count(), nullptr));
  tf_lstm_ops_stream_close(stream);
  return a.y;
}

// Runs f in kUsers threads.
template <class F>
void InThreads(const F& f) {
  std::vector<std::thread> users;
  users.reserve(kUsers);
  for (int user = 0; user < kUsers; ++user) users.emplace_back(f, user);
  for (std::thread& user : users) user.join();
}

void CheckBits(const Floats& found, const Floats& wanted) {
  if (!std::memcmp(found.data(), wanted.data(), wanted.size() * sizeof(float)))
    return;
  std::fprintf(stderr, "other bits in another thread\n");
  std::_Exit(1);
}

// Uses a stream. Returns whether another thread used it.
bool UseShared(tf_lstm_ops_stream* stream, int round, Arrays* a) {
  const auto size = static_cast<int64_t>(a->state.size());
  float* state = a->state.data();
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
      code = tf_lstm_ops_stream_run(stream, kSteps, a->x.data(), a->x_count(),
                                    a->y.data(), a->y_count(), nullptr);
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
  const Floats wanted = Sequence(session);
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
    Arrays arrays(session);
    for (int round = 0; round < 50 * kRounds; ++round) {
      if (UseShared(shared, user + round, &arrays)) ++refused;
    }
  });
  tf_lstm_ops_stream_close(shared);
  tf_lstm_ops_session_close(session);
  std::printf("%d refused\n", refused.load());
  return 0;
}
