// A fake libnvrtc.so.12: the host's compiler makes a library of the same device
// code, with prelude.h before it.
//
// Environment variables:
//   FAKE_CXX       the compiler
//   FAKE_PROGRAMS  a folder that keeps what was compiled
#include "backends/cuda/api/nvrtc.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

struct _nvrtcProgram {
  std::string source;
  std::vector<std::pair<std::string, std::string>> headers;  // name, text
  std::string image, log;
};

namespace {

constexpr auto kInvalidInput = static_cast<nvrtcResult>(3);
constexpr int kArchitectures[] = {70, 75, 80, 86, 89, 90};  // NVRTC 12.5's
constexpr auto kCompilation = static_cast<nvrtcResult>(6);

void Write(const std::string& text, const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Where a compiled program is kept; empty for nowhere.
fs::path KeptFile(const _nvrtcProgram& program, const std::string& command) {
  const char* folder = std::getenv("FAKE_PROGRAMS");
  if (!folder) return {};
  std::string all = command + program.source + Read(FAKE_PRELUDE);
  for (const auto& [name, text] : program.headers) all += name + text;
  return fs::path(folder) / std::to_string(std::hash<std::string>()(all));
}

// The host compiler's form of an option of NVRTC; empty for an unknown one.
std::string HostOption(const std::string& option) {
  const std::pair<const char*, const char*> options[] = {
      {"--std=", "-std="},
      {"--define-macro=", "-D"},
      {"--gpu-architecture=", nullptr}};
  for (const auto& [prefix, host] : options) {
    if (option.rfind(prefix, 0) != 0) continue;
    return host ? host + option.substr(std::strlen(prefix)) : "-w";
  }
  return "";
}

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(nvrtcResult result) {
  return result == kCompilation ? "NVRTC_ERROR_COMPILATION"
                                : "misuse of the fake NVRTC";
}

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 5;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(kArchitectures));
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  std::copy(std::begin(kArchitectures), std::end(kArchitectures),
            architectures);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source,
                               const char*, int header_count,
                               const char* const* headers,
                               const char* const* include_names) {
  *program = new _nvrtcProgram;
  (*program)->source = source;
  for (int n = 0; n < header_count; ++n) {
    // The host has its own standard library.
    const std::string name = include_names[n];
    const bool is_standard = name.find('/') == std::string::npos;
    if (!is_standard) (*program)->headers.emplace_back(name, headers[n]);
  }
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count,
                                const char* const* options) {
  const char* compiler = std::getenv("FAKE_CXX");
  std::string command = compiler ? compiler : "c++";
  command +=
      " -x c++ -O1 -fPIC -shared -Wall -Wextra -Werror "
      "-Wno-unknown-pragmas -include " FAKE_PRELUDE;
  for (int n = 0; n < option_count; ++n) {
    const std::string option = HostOption(options[n]);
    if (option.empty()) return kInvalidInput;
    if (option != "-w") command += ' ' + option;
  }
  const fs::path kept = KeptFile(*program, command);
  program->image = Read(kept);
  if (!program->image.empty()) return NVRTC_SUCCESS;
  std::string name = fs::temp_directory_path() / "nvrtc_XXXXXX";
  if (!mkdtemp(name.data())) return kCompilation;
  const fs::path folder = name;
  for (const auto& [header, text] : program->headers) {
    Write(text, folder / header);
  }
  Write(program->source, folder / "source.cc");
  command += " -I" + name + ' ' + name + "/source.cc -o " + name +
             "/module.so > " + name + "/log 2>&1";
  const bool compiled = std::system(command.c_str()) == 0;
  program->log = Read(folder / "log");
  if (compiled) program->image = Read(folder / "module.so");
  if (compiled && !kept.empty()) {
    Write(program->image, name + "/kept");
    fs::create_directories(kept.parent_path());
    std::error_code ignored;  // another file system; then it is not kept
    fs::rename(name + "/kept", kept, ignored);
  }
  fs::remove_all(folder);
  return compiled ? NVRTC_SUCCESS : kCompilation;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = program->image.size();
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  program->image.copy(cubin, program->image.size());
  return NVRTC_SUCCESS;
}

// PTX and machine code are the same here.
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* size) {
  return nvrtcGetCUBINSize(program, size);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* ptx) {
  return nvrtcGetCUBIN(program, ptx);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size();
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  program->log.copy(log, program->log.size());
  return NVRTC_SUCCESS;
}

}  // extern "C"
