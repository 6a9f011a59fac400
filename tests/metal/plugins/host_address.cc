// A plugin as tensorflow-metal-plugin 0.4 looks to a kernel: a tensor's data is
// an address of the host, often inside somebody's allocation; the stream is a
// C++ object, to which messages cannot be sent; kernels wait for their work.
#include <cstring>

#include "plugin.h"

struct SP_Stream_st {
  // Where an object would have its class.
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
  static void Finish(SP_Stream) {}
};

}  // namespace

extern "C" {
void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  plugin::Init<Abi>(params, status);
}
void TF_InitKernel() {}
}
