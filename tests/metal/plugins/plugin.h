// The common part of both fake plugins: one device "GPU" in host memory. Each plugin defines its
// interface to kernels:
//
// struct Abi {
//   static constexpr bool kSubdivides;     // TensorFlow divides allocations
//   static void* Allocate(uint64_t size);  // returns the data of a tensor
//   static void Free(void* data);
//   static char* Address(void* data);      // the address of the bytes
//   static SP_Stream NewStream();
//   static void DeleteStream(SP_Stream);
//   // Runs `work` on `data` in the order of the kernels' work, or at once.
//   static void Enqueue(std::function<void()> work, const std::vector<void*>& data);
//   static void Finish();                  // waits for all work
// };
#ifndef TF_LSTM_OPS_TESTS_METAL_PLUGINS_PLUGIN_H_
#define TF_LSTM_OPS_TESTS_METAL_PLUGINS_PLUGIN_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <tuple>
#include <vector>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

struct SP_Event_st {};
struct SP_Timer_st {};

namespace plugin {

using Device = const SP_Device*;
using Memory = SP_DeviceMemoryBase;

inline void Ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

// A function that only succeeds. Its last argument is the status.
template <class... Arguments>
void Succeed(Arguments... arguments) {
  Ok(std::get<sizeof...(Arguments) - 1>(std::tie(arguments...)));
}
template <class... Arguments>
void DoNothing(Arguments...) {}
template <class Abi, class... Arguments>
void Finish(Arguments... arguments) {
  Abi::Finish();
  Succeed(arguments...);
}

template <class T>
void New(Device, T** made, TF_Status* status) {
  *made = new T;
  Ok(status);
}
template <class T>
void Delete(Device, T* one) {
  delete one;
}

// With the alignment that TensorFlow requires of all memory.
inline void* AlignedMemory(uint64_t size) {
  constexpr uint64_t kAlignment = 64;
  return std::aligned_alloc(kAlignment, (size / kAlignment + 1) * kAlignment);
}

template <class Abi>
char* Address(const Memory* memory) {
  return Abi::Address(memory->opaque);
}

template <class Abi>
void AddMemory(SP_StreamExecutor* e) {
  e->allocate = [](Device, uint64_t size, int64_t, Memory* memory) {
    memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
    memory->opaque = Abi::Allocate(size);
    memory->size = size;
  };
  e->deallocate = [](Device, Memory* memory) {
    Abi::Free(memory->opaque);
    memory->opaque = nullptr;
    memory->size = 0;
  };
  e->host_memory_allocate = [](Device, uint64_t n) { return AlignedMemory(n); };
  e->host_memory_deallocate = [](Device, void* data) { std::free(data); };
  e->get_allocator_stats = [](Device, SP_AllocatorStats* stats) -> TF_Bool {
    stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
    return 0;
  };
  e->device_memory_usage = [](Device, int64_t* free, int64_t* total) -> TF_Bool {
    *free = *total = int64_t{1} << 30;
    return 1;
  };
}

template <class Abi>
void AddStreams(SP_StreamExecutor* e) {
  e->create_stream = [](Device, SP_Stream* stream, TF_Status* status) {
    *stream = Abi::NewStream();
    Ok(status);
  };
  e->destroy_stream = [](Device, SP_Stream stream) {
    Abi::Finish();
    Abi::DeleteStream(stream);
  };
  e->create_stream_dependency = Finish<Abi>;
  e->get_stream_status = Succeed;
  e->block_host_until_done = Finish<Abi>;
  e->synchronize_all_activity = Succeed;
  e->host_callback = [](Device, SP_Stream, SE_StatusCallbackFn callback,
                        void* argument) -> TF_Bool {
    Abi::Finish();
    TF_Status* status = TF_NewStatus();
    callback(argument, status);
    TF_DeleteStatus(status);
    return 1;
  };
}

template <class Abi>
void AddEvents(SP_StreamExecutor* e) {
  e->create_event = New;
  e->destroy_event = Delete;
  e->get_event_status = [](Device, SP_Event) { return SE_EVENT_COMPLETE; };
  e->record_event = Finish<Abi>;
  e->wait_for_event = Succeed;
  e->block_host_for_event = Succeed;
  e->create_timer = New;
  e->destroy_timer = Delete;
  e->start_timer = e->stop_timer = Succeed;
}

template <class Abi, class Value>
void Fill(Device, SP_Stream, Memory* to, Value value, uint64_t size, TF_Status* status) {
  auto* begin = reinterpret_cast<Value*>(Address<Abi>(to));
  Abi::Enqueue([=] { std::fill_n(begin, size / sizeof value, value); }, {to->opaque});
  Ok(status);
}

template <class Abi>
void ToHost(Device, SP_Stream, void* to, const Memory* from, uint64_t size, TF_Status* status) {
  Abi::Finish();
  std::memcpy(to, Address<Abi>(from), size);
  Ok(status);
}

template <class Abi>
void ToDevice(Device, SP_Stream, Memory* to, const void* from, uint64_t size, TF_Status* status) {
  const char* begin = static_cast<const char*>(from);
  const std::vector<char> bytes(begin, begin + size);  // `from` may be freed
  char* target = Address<Abi>(to);
  Abi::Enqueue([=] { std::memcpy(target, bytes.data(), bytes.size()); }, {to->opaque});
  Ok(status);
}

template <class Abi>
void OnDevice(Device, SP_Stream, Memory* to, const Memory* from, uint64_t size, TF_Status* status) {
  char *target = Address<Abi>(to), *source = Address<Abi>(from);
  Abi::Enqueue([=] { std::memcpy(target, source, size); }, {to->opaque, from->opaque});
  Ok(status);
}

// A copy that is waited for.
template <class Abi, auto copy, class To, class From>
void Sync(Device device, To to, From from, uint64_t size, TF_Status* status) {
  copy(device, nullptr, to, from, size, status);
  Abi::Finish();
}

template <class Abi>
void AddCopies(SP_StreamExecutor* e) {
  e->memcpy_dtoh = ToHost<Abi>;
  e->memcpy_htod = ToDevice<Abi>;
  e->memcpy_dtod = OnDevice<Abi>;
  e->sync_memcpy_dtoh = Sync<Abi, ToHost<Abi>>;
  e->sync_memcpy_htod = Sync<Abi, ToDevice<Abi>>;
  e->memset = Fill<Abi, uint8_t>;
  e->memset32 = Fill<Abi, uint32_t>;
  e->mem_zero = [](Device device, SP_Stream stream, Memory* to, uint64_t size, TF_Status* status) {
    Fill<Abi, uint8_t>(device, stream, to, 0, size, status);
  };
}

inline void AddDevice(SP_PlatformFns* f) {
  f->get_device_count = [](const SP_Platform*, int* count, TF_Status* status) {
    *count = 1;
    Ok(status);
  };
  f->create_device = [](const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
    params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
    params->device->ordinal = params->ordinal;
    params->device->hardware_name = "fake";
    params->device->device_vendor = "fake";
    params->device->pci_bus_id = "0000:00:00.0";
    Ok(status);
  };
  f->destroy_device = DoNothing;
  f->create_device_fns = [](const SP_Platform*, SE_CreateDeviceFnsParams* p, TF_Status* status) {
    p->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
    Ok(status);
  };
  f->destroy_device_fns = DoNothing;
  f->create_timer_fns = [](const SP_Platform*, SP_TimerFns* fns, TF_Status* status) {
    fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
    fns->nanoseconds = [](SP_Timer) -> uint64_t { return 0; };
    Ok(status);
  };
  f->destroy_timer_fns = DoNothing;
  f->destroy_stream_executor = DoNothing;
}

template <class Abi>
void Init(SE_PlatformRegistrationParams* params, TF_Status* status) {
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "METAL";
  params->platform->type = "GPU";
  params->platform->supports_unified_memory = 0;
  params->platform->use_bfc_allocator = Abi::kSubdivides;
  params->platform->force_memory_growth = 1;
  params->platform_fns->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  AddDevice(params->platform_fns);
  params->platform_fns->create_stream_executor =
      [](const SP_Platform*, SE_CreateStreamExecutorParams* p, TF_Status* s) {
        p->stream_executor->struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
        AddMemory<Abi>(p->stream_executor);
        AddStreams<Abi>(p->stream_executor);
        AddEvents<Abi>(p->stream_executor);
        AddCopies<Abi>(p->stream_executor);
        Ok(s);
      };
  params->destroy_platform = DoNothing;
  params->destroy_platform_fns = DoNothing;
  Ok(status);
}

}  // namespace plugin

#endif  // TF_LSTM_OPS_TESTS_METAL_PLUGINS_PLUGIN_H_
