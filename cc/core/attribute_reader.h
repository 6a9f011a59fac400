// AttributeReader: the attributes of an op by their names, free of TensorFlow.
#ifndef TF_LSTM_OPS_CORE_ATTRIBUTE_READER_H_
#define TF_LSTM_OPS_CORE_ATTRIBUTE_READER_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace tf_lstm_ops {

class AttributeReader {
 public:
  virtual ~AttributeReader() = default;
  // Errors: those of TensorFlow where the op has no such attribute.
  virtual Status GetAttr(const char* name, float* value) const = 0;
  virtual Status GetAttr(const char* name, bool* value) const = 0;
  virtual Status GetAttr(const char* name, int64_t* value) const = 0;
  virtual Status GetAttr(const char* name, std::string* value) const = 0;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_ATTRIBUTE_READER_H_
