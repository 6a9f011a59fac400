// Forks while other threads use the library.
//
//   fork_during_calls FILE THREADS FORKS
//
// Children must compute the parent's results with its session and with a stream
// of it, and with new ones. A stream that another thread used at the fork may
// be refused. A child that does not end in time is killed by SIGALRM.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tf_lstm_ops.h"

namespace {

constexpr int kFirstUses = 12;
constexpr int kLimit = 30;  // seconds
constexpr int64_t kBatch = 2, kSteps = 3;

using Floats = std::vector<float>;

void Check(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(1);
}

struct Model {
  Model(const char* path, int threads) {
    tf_lstm_ops_session_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    Check(!tf_lstm_ops_session_open(path, &options, &session, nullptr), "open");
    info.struct_size = sizeof(info);
    Check(!tf_lstm_ops_session_get_info(session, &info, nullptr), "info");
    x.assign(kBatch * kSteps * info.input_size, 0.5F);
  }

  Floats Run() const {
    Floats y(kBatch * (info.returns_sequence ? kSteps : 1) * info.output_size);
    Check(!tf_lstm_ops_session_run(session, kBatch, kSteps, x.data(), nullptr,
                                   y.data(), y.size(), nullptr),
          "run");
    return y;
  }

  tf_lstm_ops_stream* OpenStream() const {
    tf_lstm_ops_stream* stream = nullptr;
    Check(!tf_lstm_ops_stream_open(session, kBatch, &stream, nullptr),
          "open a stream");
    return stream;
  }

  // Returns the code. `y` is the result of a new sequence.
  int32_t RunStream(tf_lstm_ops_stream* stream, Floats* y) const {
    y->resize(kBatch * (info.returns_sequence ? kSteps : 1) * info.output_size);
    const int32_t code = tf_lstm_ops_stream_reset(stream, nullptr, 0, nullptr);
    if (code != TF_LSTM_OPS_OK) return code;
    return tf_lstm_ops_stream_run(stream, kSteps, x.data(), x.size(), y->data(),
                                  y->size(), nullptr);
  }

  tf_lstm_ops_session* session = nullptr;
  tf_lstm_ops_session_info info = {};
  Floats x;
};

// Runs f in a child and waits for it.
template <class F>
void InChild(const F& f) {
  const pid_t child = fork();
  Check(child >= 0, "fork");
  if (child == 0) {
    alarm(kLimit);
    f();
    std::_Exit(0);
  }
  int status = 0;
  Check(waitpid(child, &status, 0) == child, "wait");
  Check(!WIFSIGNALED(status), "a child was killed");
  Check(WEXITSTATUS(status) == 0, "a child");
}

void UseNew(const char* path, int threads, const Floats& wanted) {
  const Model model(path, threads);
  Check(model.Run() == wanted, "bits of a new session");
  tf_lstm_ops_session_close(model.session);
}

// The first use of the library measures the machine. Each time in a process
// that has not used it.
void ForkDuringTheFirstUse(const char* path, int threads) {
  for (int k = 0; k < kFirstUses; ++k) {
    InChild([&] {
      std::thread user([&] { Model(path, threads).Run(); });
      usleep(k * 500);
      InChild([&] { Model(path, threads).Run(); });
      user.join();
    });
  }
}

void ForkDuringCalls(const char* path, int threads, int forks) {
  const Model model(path, threads);
  const Floats wanted = model.Run();
  Floats y;
  tf_lstm_ops_stream* const quiet = model.OpenStream();
  tf_lstm_ops_stream* const busy = model.OpenStream();
  std::atomic<bool> is_over{false};
  std::thread runs([&] {
    while (!is_over) model.Run();
  });
  std::thread steps([&] {
    Floats own;
    while (!is_over) Check(!model.RunStream(busy, &own), "busy stream");
  });
  for (int k = 0; k < forks; ++k) {
    InChild([&] {
      Check(model.Run() == wanted, "bits of the session");
      Check(!model.RunStream(quiet, &y) && y == wanted, "the stream");
      const int32_t code = model.RunStream(busy, &y);
      Check(code == TF_LSTM_OPS_FAILED_PRECONDITION ||
                (code == TF_LSTM_OPS_OK && y == wanted),
            "the busy stream");
      InChild([&] { Check(model.Run() == wanted, "bits of a grandchild"); });
      UseNew(path, threads, wanted);
      tf_lstm_ops_stream_close(quiet);
      tf_lstm_ops_stream_close(busy);
      tf_lstm_ops_session_close(model.session);
    });
  }
  is_over = true;
  runs.join();
  steps.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: fork_during_calls FILE THREADS FORKS\n");
    return 2;
  }
  const int threads = std::atoi(argv[2]);
  ForkDuringTheFirstUse(argv[1], threads);
  ForkDuringCalls(argv[1], threads, std::atoi(argv[3]));
  return 0;
}
