#include "backends/cuda/runtime/autotune.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "backends/cuda/runtime/timing.h"

namespace tf_lstm_ops::cuda {
namespace {

// The choices of this process.
class Choices {
 public:
  static Choices& Instance() {
    static auto* const choices = new Choices;
    return *choices;
  }

  bool Find(const CallConfig& config, Algorithm* chosen) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = choices_.find(config);
    if (found == choices_.end()) return false;
    *chosen = found->second;
    return true;
  }
  // Keeps a choice, unless another thread has kept one. Returns the kept
  // choice.
  Algorithm Keep(const CallConfig& config, Algorithm algorithm) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return choices_.emplace(config, algorithm).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<CallConfig, Algorithm> choices_;
};

// Sets the time of a run, and whether its results agree.
Status TryAlgorithm(const Device& device, Algorithm algorithm, Trial* trial,
                    float* milliseconds, bool* agrees) {
  const Scratch scratch(device);
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Time(device, [&] { return trial->Run(algorithm); }, milliseconds));
  return trial->Check(agrees);
}

// Whether a candidate worked; sets the fastest one.
bool FindFastest(const Device& device, const std::vector<Algorithm>& candidates,
                 Trial* trial, Algorithm* fastest) {
  const Scratch scratch(device);
  if (!trial->Allocate().ok()) return false;
  float best = std::numeric_limits<float>::infinity();
  for (const Algorithm candidate : candidates) {
    float milliseconds = 0;
    bool agrees = false;
    const Status tried =
        TryAlgorithm(device, candidate, trial, &milliseconds, &agrees);
    if (!tried.ok() || !agrees || milliseconds >= best) continue;
    best = milliseconds;
    *fastest = candidate;
  }
  return best < std::numeric_limits<float>::infinity();
}

auto Tie(const CallConfig& c) {
  const RnnModel& m = c.model;
  return std::tie(c.kind, c.is_training, c.context, c.type, m.cell, m.layers,
                  m.directions, m.input_size, m.cell_size, m.hidden_size,
                  m.skip_input, c.batch, c.log2_time, c.time_major,
                  c.has_padding, c.has_dropout);
}

}  // namespace

void CallConfig::SetTime(int64_t time) {
  log2_time = 0;
  while (time >> (log2_time + 1)) ++log2_time;
}

bool operator<(const CallConfig& a, const CallConfig& b) {
  return Tie(a) < Tie(b);
}

Status Autotune(const Device& device, const CallConfig& config,
                const std::vector<Algorithm>& candidates, Trial* trial,
                Algorithm* chosen) {
  *chosen = candidates.front();
  if (candidates.size() == 1 || !AllowsTiming()) return Status();
  Algorithm fastest = candidates.front();
  if (FindChoice(config, &fastest)) {
    const bool applies = std::find(candidates.begin(), candidates.end(),
                                   fastest) != candidates.end();
    if (applies) *chosen = fastest;
    return Status();
  }
  bool capturing = false;
  TF_LSTM_OPS_RETURN_IF_ERROR(IsCapturing(device, &capturing));
  if (capturing) return Status();
  if (!FindFastest(device, candidates, trial, &fastest)) return Status();
  // A failed kernel may leave the device in an error state. This is an error of
  // the call, besides excluding the candidate.
  TF_LSTM_OPS_RETURN_IF_ERROR(device.Synchronize());
  *chosen = Choices::Instance().Keep(config, fastest);
  return Status();
}

bool FindChoice(const CallConfig& config, Algorithm* chosen) {
  return Choices::Instance().Find(config, chosen);
}

int64_t TaggedSize(int64_t size, Algorithm algorithm) {
  const int64_t tag = static_cast<int64_t>(algorithm) * kTagStride;
  return (size - tag + kTagPeriod - 1) / kTagPeriod * kTagPeriod + tag;
}

bool AlgorithmOfSize(int64_t size, Algorithm* algorithm) {
  const int64_t tag = size % kTagPeriod;
  if (tag % kTagStride != 0 || tag / kTagStride >= kAlgorithmCount) {
    return false;
  }
  *algorithm = static_cast<Algorithm>(tag / kTagStride);
  return true;
}

}  // namespace tf_lstm_ops::cuda
