// Stream::Claim: a call's claim to a stream, which one thread may use.
#ifndef TF_LSTM_OPS_SESSION_STREAM_CLAIM_H_
#define TF_LSTM_OPS_SESSION_STREAM_CLAIM_H_

#include <atomic>

#include "session/stream.h"

namespace tf_lstm_ops::session {

class Stream::Claim {
 public:
  Claim(Stream* stream, Error* error)
      : flag_(&stream->is_used_),
        is_granted_(!flag_->test_and_set(std::memory_order_acquire)) {
    if (!is_granted_) {
      Fail(error, kFailedPrecondition, "another thread uses the stream");
    }
  }
  ~Claim() {
    if (is_granted_) flag_->clear(std::memory_order_release);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  explicit operator bool() const { return is_granted_; }

 private:
  std::atomic_flag* const flag_;
  const bool is_granted_;
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_STREAM_CLAIM_H_
