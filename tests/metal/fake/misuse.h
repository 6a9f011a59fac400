// Errors of the fake frameworks. They refuse what Apple's frameworks leave undefined or abort for,
// with an Objective-C exception that gives the reason.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_MISUSE_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_MISUSE_H_

#include <sstream>
#include <string>

namespace fake {

[[noreturn]] void Raise(const std::string& reason);

template <class... Parts>
void Require(bool satisfied, const Parts&... parts) {
  if (satisfied) return;
  std::ostringstream reason;
  (reason << ... << parts);
  Raise(reason.str());
}

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_MISUSE_H_
