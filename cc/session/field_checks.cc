#include "session/field_checks.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace tf_lstm_ops::session {

bool AllZero(const void* data, size_t count) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  return std::all_of(bytes, bytes + count, [](uint8_t b) { return b == 0; });
}

bool InRange(const char* name, uint64_t value, uint64_t low, uint64_t high,
             FieldText* wrong) {
  if (value >= low && value <= high) return true;
  if (low == high) {
    std::snprintf(wrong->text, sizeof(wrong->text),
                  "%s is %" PRIu64 ", must be %" PRIu64, name, value, low);
  } else {
    std::snprintf(wrong->text, sizeof(wrong->text),
                  "%s is %" PRIu64 ", must be from %" PRIu64 " to %" PRIu64,
                  name, value, low, high);
  }
  return false;
}

}  // namespace tf_lstm_ops::session
