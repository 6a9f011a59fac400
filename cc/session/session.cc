#include "session/session.h"

#include <algorithm>
#include <cinttypes>

#include "session/simple_layers.h"

namespace tf_lstm_ops::session {
namespace {

// Addresses have at most 2^56 bytes, so no size of several arrays overflows.
constexpr int64_t kMaxArraySize = int64_t{1} << 54;

bool Multiply(int64_t a, int64_t b, int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

}  // namespace

bool ArraySize(int64_t a, int64_t b, int64_t c, int64_t* product) {
  // With a zero first, so that it does not matter what the others are.
  if (a == 0 || b == 0 || c == 0) {
    *product = 0;
    return true;
  }
  int64_t ab;
  return Multiply(a, b, &ab) && Multiply(ab, c, product) &&
         *product <= kMaxArraySize;
}

// The memory of one call at a time.
struct Session::Workspace {
  std::atomic<bool> is_used{true};
  Workspace* next = nullptr;  // in the session's list
  cpu::CallMemory rows[2];    // outputs of layers
  cpu::CallMemory mask;
  RecurrentMemory recurrent;
};

// A call's use of a workspace of the session that no other call uses.
class Session::Lease {
 public:
  explicit Lease(const Session& session) : workspace_(session.workspaces_) {
    while (workspace_ && !Claim()) workspace_ = workspace_->next;
    if (workspace_) return;
    workspace_ = new Workspace;
    workspace_->next = session.workspaces_;
    while (!session.workspaces_.compare_exchange_weak(workspace_->next,
                                                      workspace_)) {
    }
  }
  ~Lease() { workspace_->is_used.store(false, std::memory_order_release); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Workspace* get() const { return workspace_; }

 private:
  bool Claim() const {
    std::atomic<bool>& is_used = workspace_->is_used;
    return !is_used.load(std::memory_order_relaxed) &&
           !is_used.exchange(true, std::memory_order_acquire);
  }

  Workspace* workspace_;
};

Session::Session(int threads) : threads_(threads) {}

Session::~Session() {
  // No call uses a workspace, but in a forked child the parent's calls seem to.
  // These are left alone: the fork may have come while one changed.
  for (Workspace* workspace = workspaces_; workspace;) {
    Workspace* const next = workspace->next;
    if (!workspace->is_used) delete workspace;
    workspace = next;
  }
}

bool Session::Open(const char* path, Error* error) {
  return file_.Open(path, error) && OpenData(file_.data(), file_.size(), error);
}

bool Session::OpenData(const void* data, uint64_t size, Error* error) {
  data_ = data;
  size_ = size;
  if (!ReadFile(data, size, &layers_, error)) return false;
  for (const Layer& layer : layers_) {
    recurrent_.push_back(layer.kind == kRecurrent
                             ? std::make_unique<RecurrentLayer>(layer)
                             : nullptr);
    products_.push_back(layer.kind == kDense
                            ? std::make_unique<cpu::FrozenProduct>(
                                  layer.arrays[0][kKernel],
                                  layer.arrays[0][kBias], layer.input_size,
                                  layer.units)
                            : nullptr);
  }
  return true;
}

int64_t Session::state_size() const {
  int64_t size = 0;
  for (const Layer& layer : layers_) {
    if (layer.kind != kRecurrent) continue;
    const int64_t cell = layer.is_lstm() ? layer.units : 0;
    size += layer.direction_count() * (layer.hidden_size + cell);
  }
  return size;
}

bool Session::returns_sequence() const {
  return std::none_of(layers_.begin(), layers_.end(), [](const Layer& layer) {
    return layer.takes_last_step();
  });
}

size_t Session::forward_layers() const {
  const auto first =
      std::find_if(layers_.begin(), layers_.end(), [](const Layer& layer) {
        return layer.kind == kRecurrent && layer.directions != kForwards;
      });
  return first - layers_.begin();
}

int64_t Session::max_features() const {
  int64_t most = 0;
  for (const Layer& layer : layers_) {
    // Units, as the states and the outputs before a projection have them.
    most = std::max({most, layer.output_size(), layer.units});
  }
  return most;
}

void Session::RunDense(size_t k, const float* x, int64_t rows, float* y) const {
  products_[k]->Run(x, rows, y, threads_);
  Activate(layers_[k].activation, y, rows, layers_[k].units, y);
}

bool Session::CheckCall(const SessionCall& call, Error* error) const {
  if (call.batch < 0 || call.time < 0) {
    return Fail(error, kInvalidArgument,
                "%s is %" PRId64 ", must not be negative",
                call.batch < 0 ? "batch" : "time",
                call.batch < 0 ? call.batch : call.time);
  }
  const int64_t time = std::max<int64_t>(call.time, 1);
  int64_t size;
  // Twice, for two directions.
  if (!ArraySize(call.batch, time, 2 * std::max(max_features(), input_size()),
                 &size)) {
    return Fail(error, kInvalidArgument,
                "batch %" PRId64 " and time %" PRId64
                " are too large for arrays",
                call.batch, call.time);
  }
  const int64_t steps = returns_sequence() ? call.time : 1;
  const int64_t wanted = call.batch * steps * output_size();
  if (call.y_count != wanted) {
    return Fail(error, kInvalidArgument,
                "y_count is %" PRId64 ", must be %" PRId64, call.y_count,
                wanted);
  }
  if (!call.x && call.batch * call.time > 0) {
    return Fail(error, kInvalidArgument, "x is null");
  }
  if (!call.y && wanted > 0) {
    return Fail(error, kInvalidArgument, "y is null");
  }
  return true;
}

bool Session::Run(const SessionCall& call, Error* error) const {
  if (!CheckCall(call, error)) return false;
  if (call.y_count == 0) return true;
  const Lease lease(*this);
  RunLayers(call, lease.get());
  return true;
}

void Session::RunLayers(const SessionCall& call, Workspace* workspace) const {
  const int64_t all = call.batch * call.time;
  Sequences in = {call.batch, call.time, call.x, nullptr};
  auto* mask = static_cast<bool*>(
      workspace->mask.Get(std::max<int64_t>(all, 1) * sizeof(bool)));
  if (call.mask) {
    for (int64_t r = 0; r < all; ++r) mask[r] = call.mask[r] != 0;
    in.mask = mask;
  }
  int64_t rows = all;
  for (size_t k = 0; k < layers_.size(); ++k) {
    const Layer& layer = layers_[k];
    if (layer.takes_last_step()) rows = call.batch;
    const int64_t size = rows * layer.output_size();
    const bool is_last = k + 1 == layers_.size();
    float* y = is_last ? call.y
                       : static_cast<float*>(workspace->rows[k % 2].Get(
                             std::max<int64_t>(size, 1) * sizeof(float)));
    if (layer.kind == kRecurrent) {
      recurrent_[k]->RunSequences(in, threads_, &workspace->recurrent, y);
    } else if (layer.kind == kDense) {
      RunDense(k, in.x, rows, y);
    } else if (layer.kind == kActivation) {
      Activate(layer.activation, in.x, rows, layer.units, y);
    } else {
      RunMasking(layer, in.x, rows, y, mask);
      in.mask = mask;
    }
    in.x = y;
  }
}

}  // namespace tf_lstm_ops::session
