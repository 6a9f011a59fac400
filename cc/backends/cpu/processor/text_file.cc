#include "backends/cpu/processor/text_file.h"

#include <cstddef>
#include <cstdio>
#include <memory>

namespace tf_lstm_ops::cpu {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::string ReadText(const std::string& path) {
  std::string text;
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "r"));
  if (!file) return text;
  char part[512];
  size_t size;
  do {
    size = std::fread(part, 1, sizeof(part), file.get());
    text.append(part, size);
  } while (size == sizeof(part));  // less: the end, or an error
  return text;
}

std::string ReadWord(const std::string& path) {
  const std::string text = ReadText(path);
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_first_of(kSpace, begin) - begin);
}

}  // namespace tf_lstm_ops::cpu
