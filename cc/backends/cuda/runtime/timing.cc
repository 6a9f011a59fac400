#include "backends/cuda/runtime/timing.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace tf_lstm_ops::cuda {
namespace {

// tsl::OpDeterminismRequired(), which TensorFlow's framework library exports;
// false without TensorFlow.
bool MustBeDeterministic() {
  static auto* const required = reinterpret_cast<bool (*)()>(
      dlsym(RTLD_DEFAULT, "_ZN3tsl21OpDeterminismRequiredEv"));
  return required != nullptr && required();
}

// Measures the time between two points of a stream.
class Timer {
 public:
  explicit Timer(const Device& device) : device_(device) {}
  ~Timer() {
    for (CUevent event : {start_, end_}) {
      if (event) device_.driver().cuEventDestroy_v2(event);
    }
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  Status Start() { return Record(&start_); }
  Status Stop(float* milliseconds) {
    const Driver& driver = device_.driver();
    TF_LSTM_OPS_RETURN_IF_ERROR(Record(&end_));
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Check(driver, driver.cuEventSynchronize(end_), "cuEventSynchronize"));
    return Check(driver, driver.cuEventElapsedTime(milliseconds, start_, end_),
                 "cuEventElapsedTime");
  }

 private:
  Status Record(CUevent* event) {
    const Driver& driver = device_.driver();
    if (!*event) {
      TF_LSTM_OPS_RETURN_IF_ERROR(
          Check(driver, driver.cuEventCreate(event, 0), "cuEventCreate"));
    }
    return Check(driver, driver.cuEventRecord(*event, device_.stream()),
                 "cuEventRecord");
  }

  const Device& device_;
  CUevent start_ = nullptr, end_ = nullptr;
};

}  // namespace

bool AllowsTiming() {
  const char* text = std::getenv("TF_CUDNN_USE_AUTOTUNE");
  return (text == nullptr || std::strcmp(text, "0") != 0) &&
         !MustBeDeterministic();
}

Status IsCapturing(const Device& device, bool* capturing) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const Driver& driver = device.driver();
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Check(driver, driver.cuStreamIsCapturing(device.stream(), &status),
            "cuStreamIsCapturing"));
  *capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
  return Status();
}

Status Time(const Device& device, const std::function<Status()>& run,
            float* milliseconds) {
  *milliseconds = std::numeric_limits<float>::infinity();
  Timer timer(device);
  const auto run_once = [&] {
    float one = 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(timer.Start());
    TF_LSTM_OPS_RETURN_IF_ERROR(run());
    TF_LSTM_OPS_RETURN_IF_ERROR(timer.Stop(&one));
    *milliseconds = std::min(*milliseconds, one);
    return Status();
  };
  {
    const Scratch scratch(device);
    TF_LSTM_OPS_RETURN_IF_ERROR(run_once());
  }
  return run_once();
}

}  // namespace tf_lstm_ops::cuda
