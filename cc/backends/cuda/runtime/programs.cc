#include "backends/cuda/runtime/programs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "backends/cuda/kernels/sources.h"

namespace tf_lstm_ops::cuda {
namespace {

namespace fs = std::filesystem;

// FNV-1a, 64 bits.
uint64_t Hash(uint64_t hash, const std::string& text) {
  constexpr uint64_t kPrime = 0x100000001b3;
  for (const unsigned char c : text) hash = (hash ^ c) * kPrime;
  return hash;
}

uint64_t HashOfSources() {
  static const uint64_t hash = [] {
    uint64_t all = 0xcbf29ce484222325;
    for (const Source& source : Sources()) {
      all = Hash(Hash(all, source.name), source.text);
    }
    return all;
  }();
  return hash;
}

// The folder of compiled programs: $TF_LSTM_OPS_CUDA_CACHE, or the user's cache
// folder.
fs::path CacheFolder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (const fs::path named = variable("TF_LSTM_OPS_CUDA_CACHE");
      !named.empty()) {
    return named;
  }
  if (const fs::path cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return cache / "tf_lstm_ops";
  }
  const fs::path home = variable("HOME");
  return home.empty() ? home : home / ".cache" / "tf_lstm_ops";
}

// Whether nobody but this user can have written a file or a folder.
bool IsOwn(const struct stat& found) {
  return found.st_uid == geteuid() &&
         (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether the folder may be used. Creates it with the mode 0700 if it does not
// exist. Prints an error once if another user can write to it.
bool IsOwnFolder(const fs::path& folder) {
  std::error_code ignored;
  fs::create_directories(folder.parent_path(), ignored);
  mkdir(folder.c_str(), 0700);
  struct stat found = {};
  if (lstat(folder.c_str(), &found) != 0) return false;
  if (S_ISDIR(found.st_mode) && IsOwn(found)) return true;
  static const int printed = std::fprintf(
      stderr,
      "tf_lstm_ops: compiled kernels are not cached in %s: it must be a "
      "folder, "
      "not a link, that belongs to this user and that nobody else can write "
      "to\n",
      folder.c_str());
  return printed < 0;  // false
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

// Takes ownership of a file descriptor. Null where there is none.
File OpenedAs(int descriptor, const char* mode) {
  return File(descriptor < 0 ? nullptr : fdopen(descriptor, mode));
}

// Returns the content of a file. Empty where there is none; also where it is a
// link or where another user can have written it, and then the program is
// compiled again.
std::string Read(const fs::path& path) {
  const File file =
      OpenedAs(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC), "rb");
  struct stat found = {};
  if (!file || fstat(fileno(file.get()), &found) != 0) return {};
  if (!S_ISREG(found.st_mode) || !IsOwn(found)) return {};
  std::string text(found.st_size, '\0');
  const size_t size = std::fread(text.data(), 1, text.size(), file.get());
  return size == text.size() ? text : std::string();
}

// Writes the file atomically, for its owner only. A folder that cannot be
// written to is no error: the program is compiled again next time.
void Write(const std::string& text, const fs::path& path) {
  const fs::path part = path.string() + "." + std::to_string(getpid());
  std::error_code ignored;
  fs::remove(part, ignored);
  const File file = OpenedAs(
      open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), "wb");
  if (!file) return;
  const size_t size = std::fwrite(text.data(), 1, text.size(), file.get());
  if (size == text.size() && std::fflush(file.get()) == 0) {
    fs::rename(part, path, ignored);
  } else {
    fs::remove(part, ignored);
  }
}

std::vector<const char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size());
  for (const std::string& s : strings) pointers.push_back(s.c_str());
  return pointers;
}

// One run of NVRTC.
class Compilation {
 public:
  explicit Compilation(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  ~Compilation() {
    if (program_) nvrtc_.nvrtcDestroyProgram(&program_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  // Sets `image` to PTX if `is_ptx`, else to machine code.
  Status Run(const std::string& source, const std::vector<std::string>& options,
             bool is_ptx, std::string* image) {
    std::vector<const char*> names, texts;
    for (const Source& header : Sources()) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    const std::string text = "#include \"" + source + "\"\n";
    TF_LSTM_OPS_RETURN_IF_ERROR(Check(
        nvrtc_,
        nvrtc_.nvrtcCreateProgram(&program_, text.c_str(), "tf_lstm_ops.cu",
                                  static_cast<int>(names.size()), texts.data(),
                                  names.data()),
        "nvrtcCreateProgram"));
    const std::vector<const char*> arguments = Pointers(options);
    const Status compiled = Check(
        nvrtc_,
        nvrtc_.nvrtcCompileProgram(program_, static_cast<int>(arguments.size()),
                                   arguments.data()),
        "nvrtcCompileProgram");
    if (!compiled.ok()) {
      return MakeStatus(compiled.code(), compiled.message(), "\n", Log());
    }
    return is_ptx ? Get(nvrtc_.nvrtcGetPTXSize, nvrtc_.nvrtcGetPTX, image)
                  : Get(nvrtc_.nvrtcGetCUBINSize, nvrtc_.nvrtcGetCUBIN, image);
  }

 private:
  using GetSize = decltype(nvrtcGetPTXSize);
  using GetText = decltype(nvrtcGetPTX);

  Status Get(GetSize* get_size, GetText* get_text, std::string* text) const {
    size_t size = 0;
    TF_LSTM_OPS_RETURN_IF_ERROR(
        Check(nvrtc_, get_size(program_, &size), "nvrtcGet...Size"));
    text->resize(size);
    return Check(nvrtc_, get_text(program_, text->data()), "nvrtcGet...");
  }

  std::string Log() const {
    std::string log;
    const Status got =
        Get(nvrtc_.nvrtcGetProgramLogSize, nvrtc_.nvrtcGetProgramLog, &log);
    return got.ok() ? log : "";
  }

  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

// A program's name in the process and on disk.
std::string NameOf(const Program& program, int capability) {
  std::string name = program.source;
  for (const std::string& macro : program.macros) name += ' ' + macro;
  name += " sm_" + std::to_string(capability);
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// The oldest compute capability that has all features that the kernels use.
constexpr int kOldest = 70;

// The newest architecture that NVRTC knows, up to that of the device.
Status FindArchitecture(const Nvrtc& nvrtc, int capability, int* found) {
  int count = 0;
  TF_LSTM_OPS_RETURN_IF_ERROR(Check(nvrtc,
                                    nvrtc.nvrtcGetNumSupportedArchs(&count),
                                    "nvrtcGetNumSupportedArchs"));
  std::vector<int> known(count);
  TF_LSTM_OPS_RETURN_IF_ERROR(Check(nvrtc,
                                    nvrtc.nvrtcGetSupportedArchs(known.data()),
                                    "nvrtcGetSupportedArchs"));
  *found = 0;
  for (const int architecture : known) {
    const bool fits = architecture >= kOldest && architecture <= capability;
    if (fits) *found = std::max(*found, architecture);
  }
  if (*found > 0) return Status();
  return MakeStatus(Code::kUnimplemented,
                    "tf_lstm_ops: NVRTC has no kernels for this device, of "
                    "compute capability ",
                    capability / 10, '.', capability % 10, "; at least ",
                    kOldest / 10, '.', kOldest % 10,
                    " is needed, and an NVRTC that still knows the device");
}

// For a device that is newer than NVRTC, compiles to PTX, which the driver
// compiles further.
Status Compile(const Program& program, int capability, std::string* image) {
  const Nvrtc* nvrtc = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(Open(&nvrtc));
  int architecture = 0;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      FindArchitecture(*nvrtc, capability, &architecture));
  const bool is_ptx = architecture < capability;
  std::vector<std::string> options = {"--std=c++17",
                                      std::string("--gpu-architecture=") +
                                          (is_ptx ? "compute_" : "sm_") +
                                          std::to_string(architecture)};
  for (const std::string& macro : program.macros) {
    options.push_back("--define-macro=" + macro);
  }
  return Compilation(*nvrtc).Run("backends/cuda/" + program.source, options,
                                 is_ptx, image);
}

// Loads a program from the disk; else compiles it and writes it there.
Status Load(const Device& device, const Program& program,
            const std::string& name, CUmodule* module) {
  char hash[20] = {};
  std::snprintf(hash, sizeof hash, "_%016llx",
                static_cast<unsigned long long>(HashOfSources()));  // NOLINT
  const fs::path folder = CacheFolder();
  const fs::path kept = folder / (name + hash + ".cubin");
  const auto load = [&](const std::string& image) {
    return Check(device.driver(),
                 device.driver().cuModuleLoadData(module, image.data()),
                 "cuModuleLoadData");
  };
  const bool is_cached = !folder.empty() && IsOwnFolder(folder);
  std::string image = is_cached ? Read(kept) : "";
  if (!image.empty() && load(image).ok()) return Status();
  TF_LSTM_OPS_RETURN_IF_ERROR(
      Compile(program, device.compute_capability(), &image));
  TF_LSTM_OPS_RETURN_IF_ERROR(load(image));
  if (is_cached) Write(image, kept);
  return Status();
}

}  // namespace

Status FindKernel(const Device& device, const Program& program,
                  const char* kernel, CUfunction* function) {
  static std::mutex mutex;
  static auto* const modules =
      new std::map<std::pair<CUcontext, std::string>, CUmodule>;
  const std::string name = NameOf(program, device.compute_capability());
  CUmodule module = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    CUmodule& found = (*modules)[{device.context(), name}];
    if (!found) {
      TF_LSTM_OPS_RETURN_IF_ERROR(Load(device, program, name, &found));
    }
    module = found;
  }
  return Check(device.driver(),
               device.driver().cuModuleGetFunction(function, module, kernel),
               "cuModuleGetFunction");
}

}  // namespace tf_lstm_ops::cuda
