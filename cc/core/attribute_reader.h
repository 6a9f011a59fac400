// AttributeReader: the interface through which code without TensorFlow reads an
// op's attributes.
#ifndef TF_LSTM_OPS_CORE_ATTRIBUTE_READER_H_
#define TF_LSTM_OPS_CORE_ATTRIBUTE_READER_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace tf_lstm_ops {

class AttributeReader {
 public:
  virtual ~AttributeReader() = default;
  // Each overload sets `value` to the attribute `name`. Errors: TensorFlow's
  // error where the op has no such attribute.
  virtual Status GetAttr(const char* name, float* value) const = 0;
  virtual Status GetAttr(const char* name, bool* value) const = 0;
  virtual Status GetAttr(const char* name, int64_t* value) const = 0;
  virtual Status GetAttr(const char* name, std::string* value) const = 0;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_ATTRIBUTE_READER_H_
