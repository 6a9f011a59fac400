// MappedFile: the bytes of a file, read-only.
#ifndef TF_LSTM_OPS_SESSION_MAPPED_FILE_H_
#define TF_LSTM_OPS_SESSION_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>

#include "session/error.h"

namespace tf_lstm_ops::session {

class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Maps the file at `path`, a string in UTF-8. Call it once. Errors: NOT_FOUND
  // where it cannot be read, RESOURCE_EXHAUSTED.
  bool Open(const char* path, Error* error);

  // Aligned to 64 bytes; null for an empty file.
  const void* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_MAPPED_FILE_H_
