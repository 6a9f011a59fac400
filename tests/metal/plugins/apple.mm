// A fake plugin that behaves as Apple's tensorflow-metal 1.2 does, or worse where it may:
//
// * A tensor's data is a whole id<MTLBuffer> in private storage.
// * The stream is an object that owns a queue and an open MPSCommandBuffer. `commit` counts its
//   calls and commits only every second time. Waits commit at once.
// * Kernels do not wait for their work, and do not commit it. What a kernel reads may be the result
//   of work that is still in the open command buffer. Here it always is: all copies to the device
//   are such work.
// * The buffer of a freed tensor is the next one's at once.
#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "fake/fake.h"
#include "fake/metal.h"
#include "plugin.h"

namespace {

constexpr int kFresh = 0xFF;  // NaN

constexpr unsigned kMaxCommit = 2;  // at how many calls `commit` commits

// What happens to the command buffers of one stream, for apple_stream_trace.
std::string* trace = nullptr;
int traced_buffers = 0;

void Trace(const char* what, bool is_new = false) {
  if (trace == nullptr) return;
  traced_buffers += is_new;
  *trace += std::string(what) + " " + std::to_string(traced_buffers - 1) + "\n";
}

id<MTLDevice> Device() {
  static id<MTLDevice> const device = MTLCreateSystemDefaultDevice();
  return device;
}

}  // namespace

@interface MetalStreamWrapper : NSObject {
  dispatch_queue_t _queue;
  id<MTLCommandQueue> _commandQueue;
  MPSCommandBuffer* _current;
  unsigned _commits;
}
@end

@implementation MetalStreamWrapper
- (instancetype)init {
  if ((self = [super init])) {
    _queue = fake_queue_create();
    _commandQueue = [Device() newCommandQueue];
  }
  return self;
}

- (dispatch_queue_t)queue {
  return _queue;
}

- (void)requireOwnQueue {
  if (!fake_queue_is_current(_queue)) {
    fake_abort("the stream is used outside of dispatch_sync on its queue");
  }
}

- (MPSCommandBuffer*)open {
  [self requireOwnQueue];
  if (_current == nil) {
    _current = [[MPSCommandBuffer commandBufferFromCommandQueue:_commandQueue] retain];
    Trace("new", true);
  }
  return _current;
}

- (id<MTLCommandBuffer>)currentCommandBuffer {
  MPSCommandBuffer* open = [self open];
  Trace("use");
  return std::getenv("FAKE_PLAIN_COMMANDS") ? [open rootCommandBuffer] : open;
}

- (void)commit {
  if (++_commits >= kMaxCommit) [self commitNow];
}

- (void)commitAndWait {
  const bool has_work = _current != nil;
  [self commitNow];
  if (has_work) Trace("waitUntilCompleted");
  fake_finish(_commandQueue);
}

- (void)commitNow {
  [self requireOwnQueue];
  _commits = 0;
  if (_current != nil) Trace("commit");
  [_current commit];
  [_current release];
  _current = nil;
}

- (void)dealloc {
  [_commandQueue release];
  [super dealloc];
}
@end

namespace {

// Runs a function with an object on its queue.
template <class F>
void OnQueue(MetalStreamWrapper* stream, const F& f) {
  const F* pointer = &f;  // a block would copy the object
  @autoreleasepool {
    dispatch_sync([stream queue], ^{
      (*pointer)();
    });
  }
}

// The first stream that TensorFlow creates is the one that it gives to kernels.
MetalStreamWrapper* Compute(MetalStreamWrapper* first = nil) {
  static MetalStreamWrapper* const stream = [first retain];
  return stream;
}

FakeBuffer* BufferOf(void* data) { return (FakeBuffer*)data; }

// The buffers of freed tensors, by size. Lasts until the process ends.
struct FreeBuffers {
  std::mutex mutex;
  std::map<uint64_t, std::vector<FakeBuffer*>> by_size;
};
FreeBuffers* const freed = new FreeBuffers;

// Buffers of freed tensors are not counted: how many there are depends on how many tensors lived at
// the same time.
void CountBuffer(FakeBuffer* buffer, long change) {
  fake::counts.buffers += change;
  fake::counts.buffer_bytes += change * static_cast<long>([buffer length]);
}

// Returns nil where there is none of the size.
FakeBuffer* TakeFreed(uint64_t size) {
  const std::lock_guard<std::mutex> lock(freed->mutex);
  std::vector<FakeBuffer*>& buffers = freed->by_size[size];
  if (buffers.empty()) return nil;
  FakeBuffer* last = buffers.back();
  buffers.pop_back();
  CountBuffer(last, 1);
  return last;
}

struct Abi {
  static constexpr bool kSubdivides = false;

  static void* Allocate(uint64_t size) {
    size = size > 0 ? size : 1;
    FakeBuffer* buffer = TakeFreed(size);
    if (buffer == nil) {
      return [Device() newBufferWithLength:size options:MTLResourceStorageModePrivate];
    }
    // Work that was encoded before may still use it.
    Enqueue([buffer, size] { std::memset(buffer->_memory, kFresh, size); }, {buffer});
    return buffer;
  }
  static void Free(void* data) {
    const std::lock_guard<std::mutex> lock(freed->mutex);
    freed->by_size[[BufferOf(data) length]].push_back(BufferOf(data));
    CountBuffer(BufferOf(data), -1);
  }
  static char* Address(void* data) { return BufferOf(data)->_memory; }

  static SP_Stream NewStream() {
    MetalStreamWrapper* stream = [[MetalStreamWrapper alloc] init];
    Compute(stream);
    return (SP_Stream)stream;
  }
  static void DeleteStream(SP_Stream stream) { [(id)stream release]; }

  // Adds work to the open command buffer of the compute stream, whichever stream TensorFlow names.
  static void Enqueue(std::function<void()> work, const std::vector<void*>& data) {
    std::vector<FakeBuffer*> buffers;
    for (void* one : data) buffers.push_back(BufferOf(one));
    OnQueue(Compute(), [&] {
      auto* root = (FakeCommandBuffer*)[[Compute() open] rootCommandBuffer];
      [root addWork:std::move(work) using:buffers];
    });
  }
  static void Finish() {
    OnQueue(Compute(), [] { [Compute() commitAndWait]; });
  }
};

}  // namespace

extern "C" {
void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  plugin::Init<Abi>(params, status);
}
void TF_InitKernel() {}

// Sends a new stream the messages named in `calls`, separated by spaces, and returns what happened
// to its command buffers, a line each. The result is valid until the next call. Not for several
// threads.
const char* apple_stream_trace(const char* calls) {
  static std::string result;
  result.clear();
  traced_buffers = 0;
  trace = &result;
  MetalStreamWrapper* stream = [[MetalStreamWrapper alloc] init];
  OnQueue(stream, [&] {
    std::istringstream names(calls);
    for (std::string name; names >> name;) {
      [stream performSelector:NSSelectorFromString([NSString stringWithUTF8String:name.c_str()])];
    }
  });
  trace = nullptr;
  [stream release];
  return result.c_str();
}
}
