// The states of a stream.

#include <algorithm>
#include <cinttypes>

#include "session/stream.h"
#include "session/stream_claim.h"

namespace tf_lstm_ops::session {

// Calls f(data, elements of a row, initial row) for each state.
template <class F>
void Stream::ForEachState(const F& f) const {
  for (size_t n = 0; n < layers_.size(); ++n) {
    if (!layers_[n]) continue;
    const Layer& layer = *graph_.nodes[n].layer;
    for (int k = 0; k < layer.state_count(); ++k) {
      f(layers_[n]->state(k), layer.state_shape(k).Count(),
        layer.initial_state(k));
    }
  }
}

void Stream::ClearStates() {
  ForEachState([this](float* state, int64_t size, const float* initial) {
    FillRows(initial, size, batch_, state);
  });
}

bool Stream::Reset(const int64_t* rows, int64_t count, Error* error) {
  if (count < 0 || (!rows && count != 0)) {
    return Fail(error, kInvalidArgument, "count is %" PRId64 ", must be %s",
                count, rows ? "0 or more" : "0 because rows is null");
  }
  for (int64_t k = 0; k < count; ++k) {
    if (rows[k] >= 0 && rows[k] < batch_) continue;
    return Fail(error, kInvalidArgument,
                "rows[%" PRId64 "] is %" PRId64 ", must be from 0 to %" PRId64,
                k, rows[k], batch_ - 1);
  }
  const Claim claim(this, error);
  if (!claim) return false;
  if (!rows) ClearStates();
  ForEachState([=](float* state, int64_t size, const float* initial) {
    for (int64_t k = 0; k < count; ++k) {
      FillRows(initial, size, 1, state + rows[k] * size);
    }
  });
  return true;
}

bool Stream::CheckState(const float* state, int64_t count, Error* error) const {
  const int64_t wanted = batch_ * session_.state_size();
  if (count != wanted) {
    return Fail(error, kInvalidArgument,
                "count is %" PRId64 ", must be %" PRId64, count, wanted);
  }
  if (!state && wanted > 0) {
    return Fail(error, kInvalidArgument, "state is null");
  }
  return true;
}

bool Stream::GetState(float* state, int64_t count, Error* error) {
  if (!CheckState(state, count, error)) return false;
  const Claim claim(this, error);
  if (!claim) return false;
  ForEachState([&](const float* from, int64_t size, const float*) {
    state = std::copy_n(from, batch_ * size, state);
  });
  return true;
}

bool Stream::SetState(const float* state, int64_t count, Error* error) {
  if (!CheckState(state, count, error)) return false;
  const Claim claim(this, error);
  if (!claim) return false;
  ForEachState([&](float* to, int64_t size, const float*) {
    std::copy_n(state, batch_ * size, to);
    state += batch_ * size;
  });
  return true;
}

}  // namespace tf_lstm_ops::session
