// What the functions of include/tf_lstm_ops.h share.
#ifndef TF_LSTM_OPS_SESSION_LIBRARY_H_
#define TF_LSTM_OPS_SESSION_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

#include "session/computing_mode.h"
#include "session/error.h"
#include "session/session.h"
#include "session/stream.h"
#include "tf_lstm_ops.h"

struct tf_lstm_ops_session {
  explicit tf_lstm_ops_session(int threads) : session(threads) {}
  tf_lstm_ops::session::Session session;
};

struct tf_lstm_ops_stream {
  tf_lstm_ops_stream(const tf_lstm_ops::session::Session& session,
                     int64_t batch)
      : session(session), stream(session, batch) {}
  const tf_lstm_ops::session::Session& session;
  tf_lstm_ops::session::Stream stream;
};

namespace tf_lstm_ops::session {

// Programs that were compiled before there was `reason` have the first 256
// bytes.
static_assert(offsetof(tf_lstm_ops_error, reason) == 256);
static_assert(sizeof(tf_lstm_ops_error) == 272);

// Copies `from` to the caller's error as far as its size goes.
inline int32_t Report(const Error& from, tf_lstm_ops_error* to) {
  if (!to) return from.code;
  const uint32_t size = to->struct_size;
  // Sets a member that the size includes.
  const auto set = [&](auto* member, const auto& value) {
    const auto end = reinterpret_cast<const char*>(member + 1);
    if (end > reinterpret_cast<const char*>(to) + size) return;
    static_assert(sizeof(*member) == sizeof(value));
    std::memcpy(member, &value, sizeof(value));
  };
  set(&to->code, from.code);
  set(&to->text, from.text);
  set(&to->reason, from.reason);
  set(&to->layer, from.layer);
  set(&to->layer_begin, from.layer_begin);
  set(&to->layer_end, from.layer_end);
  return from.code;
}

// Runs f(Error*), which returns whether it succeeded. C has no exceptions.
template <class F>
int32_t Try(tf_lstm_ops_error* error, const F& f) {
  Error failure;
  try {
    if (f(&failure)) return TF_LSTM_OPS_OK;
  } catch (const std::bad_alloc&) {
    Fail(&failure, kResourceExhausted, "not enough memory");
  } catch (const std::exception& exception) {
    Fail(&failure, kResourceExhausted, "%s", exception.what());
  } catch (...) {
    Fail(&failure, kResourceExhausted, "unknown exception");
  }
  return Report(failure, error);
}

template <class T>
bool IsGiven(const T* argument, const char* name, Error* error) {
  return argument || Fail(error, kInvalidArgument, "%s is null", name);
}

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LIBRARY_H_
