// The functions of include/tf_lstm_ops.h, but those of tf_lstm_ops_array.

#include "session/library.h"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/cpu/team/thread_team.h"

using tf_lstm_ops::kMaxThreads;
using tf_lstm_ops::session::ComputingMode;
using tf_lstm_ops::session::Error;
using tf_lstm_ops::session::Fail;
using tf_lstm_ops::session::IsGiven;
using tf_lstm_ops::session::Session;
using tf_lstm_ops::session::SessionInputs;
using tf_lstm_ops::session::Stream;
using tf_lstm_ops::session::Tensor;
using tf_lstm_ops::session::Try;
using tf_lstm_ops::session::Type;
using tf_lstm_ops::session::ValidSteps;
namespace codes = tf_lstm_ops::session;

namespace {

// Sets `threads` from the options, which may be null.
bool ReadOptions(const tf_lstm_ops_session_options* options, int* threads,
                 Error* error) {
  *threads = 1;
  if (!options) return true;
  if (options->struct_size < sizeof(*options)) {
    return Fail(error, codes::kInvalidArgument,
                "options.struct_size is %" PRIu32 ", must be %zu",
                options->struct_size, sizeof(*options));
  }
  if (options->struct_size > sizeof(*options)) {
    return Fail(error, codes::kUnimplemented,
                "options.struct_size is %" PRIu32
                ", this library knows %zu bytes",
                options->struct_size, sizeof(*options));
  }
  if (options->threads < 0 || options->threads > kMaxThreads) {
    return Fail(error, codes::kInvalidArgument,
                "options.threads is %" PRId32 ", must be from 0 to %d",
                options->threads, kMaxThreads);
  }
  *threads = std::max(options->threads, 1);
  return true;
}

// Makes a session that open(Session*, Error*) fills.
template <class Open>
int32_t OpenSession(const tf_lstm_ops_session_options* options,
                    tf_lstm_ops_session** session, tf_lstm_ops_error* error,
                    const Open& open) {
  return Try(error, [&](Error* failure) {
    int threads;
    if (!IsGiven(session, "session", failure) ||
        !ReadOptions(options, &threads, failure)) {
      return false;
    }
    const ComputingMode mode;
    auto opened = std::make_unique<tf_lstm_ops_session>(threads);
    if (!open(&opened->session, failure)) return false;
    *session = opened.release();
    return true;
  });
}

// Computes whole sequences of a session with one input and one output.
bool Run(const Session& session, int64_t batch, int64_t time, const float* x,
         const ValidSteps& valid, float* y, int64_t y_count, Error* error) {
  if (!session.CheckIsSimple(error)) return false;
  if (batch < 0 || time < 0) {
    return Fail(error, codes::kInvalidArgument,
                "%s is %" PRId64 ", must not be negative",
                batch < 0 ? "batch" : "time", batch < 0 ? batch : time);
  }
  Tensor input, output;
  input.shape = session.InputShape(batch, time);
  if (!input.shape.Fits()) {
    return Fail(error, codes::kInvalidArgument,
                "batch %" PRId64 " and time %" PRId64
                " are too large for arrays",
                batch, time);
  }
  // It is not written to.
  input.data = const_cast<float*>(x);
  output.data = y;
  const Type type = Type::kFloat;
  const SessionInputs inputs = {&input, &type, &valid};
  if (!session.Infer(inputs, &output.shape, error)) return false;
  const int64_t wanted = output.shape.Count();
  if (y_count != wanted) {
    return Fail(error, codes::kInvalidArgument,
                "y_count is %" PRId64 ", must be %" PRId64, y_count, wanted);
  }
  if (!x && input.shape.Count() > 0) {
    return Fail(error, codes::kInvalidArgument, "x is null");
  }
  if (!y && wanted > 0) {
    return Fail(error, codes::kInvalidArgument, "y is null");
  }
  return session.Run(inputs, &output, error);
}

}  // namespace

int32_t tf_lstm_ops_api_version(void) { return TF_LSTM_OPS_API_VERSION; }

const char* tf_lstm_ops_code_text(int32_t code) {
  switch (code) {
    case TF_LSTM_OPS_OK:
      return "ok";
    case TF_LSTM_OPS_INVALID_ARGUMENT:
      return "invalid argument";
    case TF_LSTM_OPS_NOT_FOUND:
      return "the file cannot be read";
    case TF_LSTM_OPS_RESOURCE_EXHAUSTED:
      return "not enough memory";
    case TF_LSTM_OPS_FAILED_PRECONDITION:
      return "two threads use one stream";
    case TF_LSTM_OPS_UNIMPLEMENTED:
      return "a version that the library lacks";
    case TF_LSTM_OPS_DATA_LOSS:
      return "the file is not valid";
    default:
      return "unknown code";
  }
}

int32_t tf_lstm_ops_session_open(const char* path,
                                 const tf_lstm_ops_session_options* options,
                                 tf_lstm_ops_session** session,
                                 tf_lstm_ops_error* error) {
  return OpenSession(
      options, session, error, [&](Session* opened, Error* failure) {
        return IsGiven(path, "path", failure) && opened->Open(path, failure);
      });
}

int32_t tf_lstm_ops_session_open_data(
    const void* data, uint64_t size, const tf_lstm_ops_session_options* options,
    tf_lstm_ops_session** session, tf_lstm_ops_error* error) {
  return OpenSession(
      options, session, error, [&](Session* opened, Error* failure) {
        if (!IsGiven(data, "data", failure)) return false;
        const uint64_t misaligned =
            reinterpret_cast<uintptr_t>(data) % codes::kAlignment;
        if (misaligned != 0) {
          return Fail(failure, codes::kInvalidArgument,
                      "data is %" PRIu64 " bytes behind a multiple of %" PRIu64
                      ", must be aligned to %" PRIu64,
                      misaligned, codes::kAlignment, codes::kAlignment);
        }
        return opened->OpenData(data, size, failure);
      });
}

void tf_lstm_ops_session_close(tf_lstm_ops_session* session) { delete session; }

int32_t tf_lstm_ops_session_get_info(const tf_lstm_ops_session* session,
                                     tf_lstm_ops_session_info* info,
                                     tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!IsGiven(session, "session", failure) ||
        !IsGiven(info, "info", failure)) {
      return false;
    }
    const uint32_t size = info->struct_size;
    if (size < sizeof(info->struct_size)) {
      return Fail(failure, codes::kInvalidArgument,
                  "info.struct_size is %" PRIu32 ", must be %zu", size,
                  sizeof(*info));
    }
    const Session& from = session->session;
    tf_lstm_ops_session_info all;
    all.struct_size = size;
    all.threads = from.threads();
    all.input_size = from.input_size();
    all.output_size = from.output_size();
    all.state_size = from.state_size();
    all.returns_sequence = from.returns_sequence() ? 1 : 0;
    const auto& graph = from.graph();
    all.can_stream = graph.can_stream() ? 1 : 0;
    all.input_count = graph.input_count();
    all.output_count = graph.output_count();
    all.state_count = static_cast<int32_t>(from.state_shapes().size());
    all.blocking_layer = graph.blocking_node;
    std::memcpy(info, &all, std::min<size_t>(size, sizeof(all)));
    return true;
  });
}

int32_t tf_lstm_ops_session_get_data(const tf_lstm_ops_session* session,
                                     const void** data, uint64_t* size,
                                     tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!IsGiven(session, "session", failure) ||
        !IsGiven(data, "data", failure) || !IsGiven(size, "size", failure)) {
      return false;
    }
    *data = session->session.data();
    *size = session->session.size();
    return true;
  });
}

int32_t tf_lstm_ops_session_run(const tf_lstm_ops_session* session,
                                int64_t batch, int64_t time, const float* x,
                                const uint8_t* mask, float* y, int64_t y_count,
                                tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    const ComputingMode mode;
    return IsGiven(session, "session", failure) &&
           Run(session->session, batch, time, x, {mask, nullptr}, y, y_count,
               failure);
  });
}

int32_t tf_lstm_ops_session_run_lengths(const tf_lstm_ops_session* session,
                                        int64_t batch, int64_t time,
                                        const float* x, const int32_t* lengths,
                                        float* y, int64_t y_count,
                                        tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    const ComputingMode mode;
    return IsGiven(session, "session", failure) &&
           Run(session->session, batch, time, x, {nullptr, lengths}, y, y_count,
               failure);
  });
}

int32_t tf_lstm_ops_stream_open(const tf_lstm_ops_session* session,
                                int64_t batch, tf_lstm_ops_stream** stream,
                                tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    if (!IsGiven(session, "session", failure) ||
        !IsGiven(stream, "stream", failure)) {
      return false;
    }
    if (!Stream::Check(session->session, batch, failure)) return false;
    const ComputingMode mode;  // of the team's threads, which it may start
    *stream = new tf_lstm_ops_stream(session->session, batch);
    return true;
  });
}

void tf_lstm_ops_stream_close(tf_lstm_ops_stream* stream) { delete stream; }

int32_t tf_lstm_ops_stream_run(tf_lstm_ops_stream* stream, int64_t steps,
                               const float* x, int64_t x_count, float* y,
                               int64_t y_count, tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    const ComputingMode mode;
    return IsGiven(stream, "stream", failure) &&
           stream->stream.Run(steps, x, x_count, y, y_count, failure);
  });
}

int32_t tf_lstm_ops_stream_reset(tf_lstm_ops_stream* stream,
                                 const int64_t* rows, int64_t count,
                                 tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    return IsGiven(stream, "stream", failure) &&
           stream->stream.Reset(rows, count, failure);
  });
}

int32_t tf_lstm_ops_stream_get_state(tf_lstm_ops_stream* stream, float* state,
                                     int64_t count, tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    return IsGiven(stream, "stream", failure) &&
           stream->stream.GetState(state, count, failure);
  });
}

int32_t tf_lstm_ops_stream_set_state(tf_lstm_ops_stream* stream,
                                     const float* state, int64_t count,
                                     tf_lstm_ops_error* error) {
  return Try(error, [&](Error* failure) {
    return IsGiven(stream, "stream", failure) &&
           stream->stream.SetState(state, count, failure);
  });
}
