#include "session/mapped_file.h"

#if defined(_WIN32)
#include <malloc.h>
#include <windows.h>

#include <cstdio>
#include <vector>

#include "session/file_format.h"
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#endif

namespace tf_lstm_ops::session {

#if defined(_WIN32)

namespace {

bool Read(std::FILE* file, void** data, size_t* size) {
  if (_fseeki64(file, 0, SEEK_END) != 0) return false;
  const int64_t end = _ftelli64(file);
  if (end < 0 || _fseeki64(file, 0, SEEK_SET) != 0) return false;
  if (end == 0) return true;
  *size = static_cast<size_t>(end);
  *data = _aligned_malloc(*size, kAlignment);
  return *data && std::fread(*data, 1, *size, file) == *size;
}

}  // namespace

MappedFile::~MappedFile() { _aligned_free(data_); }

bool MappedFile::Open(const char* path, Error* error) {
  const int count = MultiByteToWideChar(CP_UTF8, 0, path, -1, nullptr, 0);
  std::vector<wchar_t> wide(count + 1);
  MultiByteToWideChar(CP_UTF8, 0, path, -1, wide.data(), count);
  std::FILE* file = _wfopen(wide.data(), L"rb");
  if (!file) return Fail(error, kNotFound, "cannot open the file %s", path);
  const bool is_read = Read(file, &data_, &size_);
  std::fclose(file);
  return is_read || Fail(error, kNotFound, "cannot read the file %s", path);
}

#else

namespace {

bool SystemFails(Error* error, Code code, const char* what, const char* path) {
  const int number = errno;
  return Fail(error, code, "cannot %s the file: %s: %s", what,
              std::generic_category().message(number).c_str(), path);
}

}  // namespace

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
}

bool MappedFile::Open(const char* path, Error* error) {
  // To open a device can have effects, and a socket cannot be opened.
  struct stat status = {};
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
    return Fail(error, kNotFound, "not a regular file: %s", path);
  }
  // O_NONBLOCK: a FIFO that takes the place of the file meanwhile.
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return SystemFails(error, kNotFound, "open", path);
  bool is_done = false;
  if (fstat(file, &status) != 0) {
    is_done = SystemFails(error, kNotFound, "read", path);
  } else if (!S_ISREG(status.st_mode)) {
    is_done = Fail(error, kNotFound, "not a regular file: %s", path);
  } else if (status.st_size == 0) {
    is_done = true;
  } else {
    const auto size = static_cast<size_t>(status.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      is_done = SystemFails(error, kResourceExhausted, "map", path);
    } else {
      data_ = data;
      size_ = size;
      is_done = true;
    }
  }
  close(file);
  return is_done;
}

#endif

}  // namespace tf_lstm_ops::session
