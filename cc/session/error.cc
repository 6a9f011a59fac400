#include "session/error.h"

#include <cstdarg>
#include <cstdio>

namespace tf_lstm_ops::session {

bool Fail(Error* error, Code code, const char* format, ...) {
  error->code = code;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error->text, sizeof(error->text), format, arguments);
  va_end(arguments);
  return false;
}

}  // namespace tf_lstm_ops::session
