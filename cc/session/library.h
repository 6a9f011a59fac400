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

static_assert(sizeof(tf_lstm_ops_error) == 256);

// Copies `from` to the caller's error as far as its size goes.
inline int32_t Report(const Error& from, tf_lstm_ops_error* to) {
  if (!to) return from.code;
  const uint32_t size = to->struct_size;
  if (size >= offsetof(tf_lstm_ops_error, text)) to->code = from.code;
  if (size >= sizeof(*to)) std::memcpy(to->text, from.text, sizeof(to->text));
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
