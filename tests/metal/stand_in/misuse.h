// What Apple's frameworks leave undefined or end the process for, the stand-in
// refuses: with an Objective-C exception whose reason says what was wrong.
#ifndef TF_LSTM_OPS_TESTS_METAL_STAND_IN_MISUSE_H_
#define TF_LSTM_OPS_TESTS_METAL_STAND_IN_MISUSE_H_

#include <sstream>
#include <string>

namespace stand_in {

[[noreturn]] void Raise(const std::string& reason);

template <class... Parts>
void Require(bool satisfied, const Parts&... parts) {
  if (satisfied) return;
  std::ostringstream reason;
  (reason << ... << parts);
  Raise(reason.str());
}

}  // namespace stand_in

#endif  // TF_LSTM_OPS_TESTS_METAL_STAND_IN_MISUSE_H_
