#include "backends/cuda/runtime/programs.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <utility>

#include "backends/cuda/kernels/sources.h"

namespace tf_lstm_ops::cuda {
namespace {

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

// A program's name in the process.
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

}  // namespace

Status FindKernel(const Device& device, const Program& program,
                  const char* kernel, CUfunction* function) {
  static std::mutex mutex;
  static auto* const modules =
      new std::map<std::pair<CUcontext, std::string>, CUmodule>;
  // Compiled code by name: equal devices load the same.
  static auto* const images = new std::map<std::string, std::string>;
  const std::string name = NameOf(program, device.compute_capability());
  CUmodule module = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    CUmodule& found = (*modules)[{device.context(), name}];
    if (!found) {
      std::string& image = (*images)[name];
      if (image.empty()) {
        TF_LSTM_OPS_RETURN_IF_ERROR(
            Compile(program, device.compute_capability(), &image));
      }
      TF_LSTM_OPS_RETURN_IF_ERROR(
          Check(device.driver(),
                device.driver().cuModuleLoadData(&found, image.data()),
                "cuModuleLoadData"));
    }
    module = found;
  }
  return Check(device.driver(),
               device.driver().cuModuleGetFunction(function, module, kernel),
               "cuModuleGetFunction");
}

}  // namespace tf_lstm_ops::cuda
