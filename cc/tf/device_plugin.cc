#include "tf/device_plugin.h"

#include <string>
#include <vector>

#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#elif defined(__APPLE__)
#include <dlfcn.h>
#include <mach-o/dyld.h>
#endif

namespace tf_lstm_ops::tf {
namespace {

#if defined(__linux__)

// The paths of the libraries of this process.
std::vector<std::string> Libraries() {
  std::vector<std::string> paths;
  const auto add = [](dl_phdr_info* info, size_t, void* found) {
    const std::string path = info->dlpi_name;
    if (!path.empty())
      static_cast<std::vector<std::string>*>(found)->push_back(path);
    return 0;
  };
  dl_iterate_phdr(add, &paths);
  return paths;
}

#elif defined(__APPLE__)

std::vector<std::string> Libraries() {
  std::vector<std::string> paths;
  // Another thread may unload a library: its name is null then.
  for (uint32_t k = 0; k < _dyld_image_count(); ++k) {
    if (const char* path = _dyld_get_image_name(k)) paths.push_back(path);
  }
  return paths;
}

#endif

}  // namespace

bool HasDevicePlugin() {
#if defined(__linux__) || defined(__APPLE__)
  for (const std::string& path : Libraries()) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    const bool is_plugin = dlsym(library, "SE_InitPlugin") != nullptr;
    dlclose(library);
    if (is_plugin) return true;
  }
#endif
  return false;
}

}  // namespace tf_lstm_ops::tf
