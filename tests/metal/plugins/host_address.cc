// A fake plugin with the interface of tensorflow-metal-plugin 0.4: a tensor's data is a host
// address, often inside a larger allocation. The stream is a C++ object, which does not respond to
// messages. Kernels wait for their work.
#include <cstring>

#include "plugin.h"

struct SP_Stream_st {
  // At the position of an Objective-C object's class.
  const void* no_class = nullptr;
};

namespace {

constexpr int kFresh = 0xFF;  // NaN in every type

struct Abi {
  static constexpr bool kSubdivides = true;

  static void* Allocate(uint64_t size) {
    void* data = plugin::AlignedMemory(size);
    std::memset(data, kFresh, size);
    return data;
  }
  static void Free(void* data) { std::free(data); }
  static char* Address(void* data) { return static_cast<char*>(data); }
  static SP_Stream NewStream() { return new SP_Stream_st; }
  static void DeleteStream(SP_Stream stream) { delete stream; }
  static void Enqueue(const std::function<void()>& work, const std::vector<void*>&) { work(); }
  static void Finish() {}
};

}  // namespace

extern "C" {
void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  plugin::Init<Abi>(params, status);
}
void TF_InitKernel() {}
}
