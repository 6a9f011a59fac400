// Checks of fields of a session's file, for the readers of its tables and of
// its nodes.
#ifndef TF_LSTM_OPS_SESSION_FIELD_CHECKS_H_
#define TF_LSTM_OPS_SESSION_FIELD_CHECKS_H_

#include <cstddef>
#include <cstdint>

namespace tf_lstm_ops::session {

// What is wrong with a field.
struct FieldText {
  char text[160];
};

bool AllZero(const void* data, size_t count);

// Whether the field `name` has a value from `low` to `high`. Else sets `wrong`.
bool InRange(const char* name, uint64_t value, uint64_t low, uint64_t high,
             FieldText* wrong);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_FIELD_CHECKS_H_
