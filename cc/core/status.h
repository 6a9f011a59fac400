// Status: the result of an operation that can fail, without TensorFlow.
#ifndef TF_LSTM_OPS_CORE_STATUS_H_
#define TF_LSTM_OPS_CORE_STATUS_H_

#include <sstream>
#include <string>
#include <utility>

namespace tf_lstm_ops {

// Values equal the canonical codes of TensorFlow's TF_Code.
enum class Code {
  kOk = 0,
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Returns a status whose message joins the arguments as an ostream prints them.
template <class... Parts>
Status MakeStatus(Code code, const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  return Status(code, message.str());
}

template <class... Parts>
Status InvalidArgument(const Parts&... parts) {
  return MakeStatus(Code::kInvalidArgument, parts...);
}

}  // namespace tf_lstm_ops

// Returns the status of `expression` from the calling function if it is an
// error.
#define TF_LSTM_OPS_RETURN_IF_ERROR(expression)            \
  do {                                                     \
    ::tf_lstm_ops::Status status_or_error_ = (expression); \
    if (!status_or_error_.ok()) return status_or_error_;   \
  } while (false)

#endif  // TF_LSTM_OPS_CORE_STATUS_H_
