#include "session/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace tf_lstm_ops::session {
namespace {

// Sets what comes before the text.
void Begin(Error* error, Code code) {
  error->code = code;
  error->reason = kNoReason;
  error->layer = kNoLayer;
  error->layer_begin = error->layer_end = 0;
  error->text[0] = 0;
}

// Where a text that may be cut ends.
int32_t EndOf(const Error& error) {
  return static_cast<int32_t>(std::strlen(error.text));
}

void Append(Error* error, const char* format, va_list arguments) {
  const int32_t end = EndOf(*error);
  std::vsnprintf(error->text + end, sizeof(error->text) - end, format,
                 arguments);
}

}  // namespace

bool Fail(Error* error, Code code, const char* format, ...) {
  Begin(error, code);
  va_list arguments;
  va_start(arguments, format);
  Append(error, format, arguments);
  va_end(arguments);
  return false;
}

bool FailInLayer(Error* error, Code code, size_t layer, const char* format,
                 ...) {
  Begin(error, code);
  AppendLayer(error, layer, "");
  va_list arguments;
  va_start(arguments, format);
  Append(error, format, arguments);
  va_end(arguments);
  return false;
}

void AppendLayer(Error* error, size_t layer, const char* behind) {
  error->layer = static_cast<int32_t>(layer);
  error->layer_begin = EndOf(*error);
  std::snprintf(error->text + error->layer_begin,
                sizeof(error->text) - error->layer_begin, "layer %zu%s", layer,
                behind);
  error->layer_end = EndOf(*error);
}

}  // namespace tf_lstm_ops::session
