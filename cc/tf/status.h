// Conversion between TensorFlow's TF_Status and core's Status.
#ifndef TF_LSTM_OPS_TF_STATUS_H_
#define TF_LSTM_OPS_TF_STATUS_H_

#include <exception>
#include <new>

#include "core/status.h"
#include "tf/tensorflow_api.h"

namespace tf_lstm_ops::tf {

// Owns a TF_Status.
class TfStatus {
 public:
  TfStatus() : status_(TF_NewStatus()) {}
  ~TfStatus() { TF_DeleteStatus(status_); }
  TfStatus(const TfStatus&) = delete;
  TfStatus& operator=(const TfStatus&) = delete;

  TF_Status* get() const { return status_; }
  bool ok() const { return TF_GetCode(status_) == TF_OK; }
  Status ToStatus() const {
    if (ok()) return Status();
    return Status(static_cast<Code>(TF_GetCode(status_)), TF_Message(status_));
  }
  // Returns the status and sets it to OK.
  Status Take() const {
    Status taken = ToStatus();
    TF_SetStatus(status_, TF_OK, "");
    return taken;
  }

 private:
  TF_Status* status_;
};

// Returns the status of a function that TensorFlow calls. Exceptions become
// statuses: TensorFlow is not written for them, and one would end the process.
template <class F>
Status CatchExceptions(const F& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return MakeStatus(Code::kResourceExhausted, "tf_lstm_ops: out of memory");
  } catch (const std::exception& error) {
    return MakeStatus(Code::kInternal, "tf_lstm_ops: ", error.what());
  }
}

// Copies `from` to `to`.
inline void SetStatus(const Status& from, TF_Status* to) {
  TF_SetStatus(to, static_cast<TF_Code>(from.code()), from.message().c_str());
}

}  // namespace tf_lstm_ops::tf

#endif  // TF_LSTM_OPS_TF_STATUS_H_
