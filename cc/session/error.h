// Error: what went wrong in a call, as tf_lstm_ops_error has it.
#ifndef TF_LSTM_OPS_SESSION_ERROR_H_
#define TF_LSTM_OPS_SESSION_ERROR_H_

#include <cstddef>
#include <cstdint>

#include "tf_lstm_ops.h"

namespace tf_lstm_ops::session {

// The codes of the C header.
enum Code : int32_t {
  kOk = TF_LSTM_OPS_OK,
  kInvalidArgument = TF_LSTM_OPS_INVALID_ARGUMENT,
  kNotFound = TF_LSTM_OPS_NOT_FOUND,
  kResourceExhausted = TF_LSTM_OPS_RESOURCE_EXHAUSTED,
  kFailedPrecondition = TF_LSTM_OPS_FAILED_PRECONDITION,
  kUnimplemented = TF_LSTM_OPS_UNIMPLEMENTED,
  kDataLoss = TF_LSTM_OPS_DATA_LOSS,
};

// More than the code.
enum Reason : int32_t {
  kNoReason = TF_LSTM_OPS_REASON_NONE,
  kNotASessionFile = TF_LSTM_OPS_REASON_NOT_A_SESSION_FILE,
};

constexpr int32_t kNoLayer = -1;

struct Error {
  // Not all of the text: a call that succeeds would clear it in vain.
  Error() { text[0] = 0; }

  Code code = kOk;
  Reason reason = kNoReason;
  // The layer that the text is about, and where in the text its number is.
  int32_t layer = kNoLayer;
  int32_t layer_begin = 0, layer_end = 0;
  char text[sizeof(tf_lstm_ops_error::text)];
};

// Sets the error, with a text as of printf, and returns false.
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
bool Fail(Error* error, Code code, const char* format, ...);

// The same after the text "layer k", which the error then is about.
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
bool FailInLayer(Error* error, Code code, size_t layer, const char* format,
                 ...);

// Appends "layer k" and a text that follows it. The error then is about it.
void AppendLayer(Error* error, size_t layer, const char* behind);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_ERROR_H_
