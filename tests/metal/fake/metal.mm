// Metal: buffers in host memory, and command buffers that run late.
#include "metal.h"

#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "misuse.h"

using fake::counts;
using fake::Require;

namespace {

// Byte values of new and of freed memory: NaN as float, half or bfloat16; out of range as an index.
constexpr int kFresh = 0xFF, kFreed = 0xFE;
constexpr size_t kMostUncompleted = 64;  // the default of newCommandQueue
std::atomic<bool> fail_next{false};

// Retains a buffer and counts an encoded use.
std::shared_ptr<void> Used(FakeBuffer* buffer) {
  ++*buffer->_pending;
  return {[buffer retain], [](void* used) {
            --*((FakeBuffer*)used)->_pending;
            [(id)used release];
          }};
}

// The address of a buffer object is the address of a tensor in plugins/apple.mm. TensorFlow
// requires multiples of 64 there; malloc's are multiples of 16.
FakeBuffer* NewAlignedBuffer() {
  std::vector<FakeBuffer*> rejected;
  FakeBuffer* buffer = [[FakeBuffer alloc] init];
  while (reinterpret_cast<uintptr_t>(buffer) % 64 != 0) {
    rejected.push_back(buffer);
    buffer = [[FakeBuffer alloc] init];
  }
  for (FakeBuffer* other : rejected) [other release];
  return buffer;
}

}  // namespace

fake::Counts fake::counts;

std::shared_ptr<void> Retained(id object) {
  return {[object retain], [](void* retained) { [(id)retained release]; }};
}

@interface FakeDevice : NSObject <MTLDevice>
@end

extern "C" {

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  static FakeDevice* device = [[FakeDevice alloc] init];
  return [device retain];
}

void fake_finish(void* command_queue) { [(FakeCommandQueue*)command_queue runUntil:nil]; }

void fake_fail_next_command_buffer(void) { fail_next = true; }

long fake_count(const char* name) {
  const std::map<std::string, long> all = {{"graphs", counts.graphs},
                                           {"tensor data", counts.tensor_data},
                                           {"buffers", counts.buffers},
                                           {"buffer bytes", counts.buffer_bytes},
                                           {"command buffers", counts.command_buffers}};
  return all.at(name);
}

}  // extern "C"

@implementation FakeDevice
- (id<MTLCommandQueue>)newCommandQueue {
  return [[FakeCommandQueue alloc] init];
}

- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  Require(options == MTLResourceStorageModeShared || options == MTLResourceStorageModePrivate,
          "newBufferWithLength: only shared and private storage are emulated");
  if (length == 0) return nil;  // as Metal
  FakeBuffer* buffer = NewAlignedBuffer();
  buffer->_length = length;
  buffer->_is_private = options == MTLResourceStorageModePrivate;
  buffer->_memory = static_cast<char*>(std::malloc(length));
  std::memset(buffer->_memory, kFresh, length);
  counts.buffer_bytes += static_cast<long>(length);
  return buffer;
}

- (id<MTLBuffer>)newBufferWithBytes:(const void*)pointer
                             length:(NSUInteger)length
                            options:(MTLResourceOptions)options {
  id<MTLBuffer> buffer = [self newBufferWithLength:length options:options];
  if (buffer != nil) std::memcpy([buffer contents], pointer, length);
  return buffer;
}
@end

@implementation FakeBuffer
@synthesize length = _length;

- (instancetype)init {
  if ((self = [super init])) {
    _pending = new std::atomic<int>(0);
    ++counts.buffers;
  }
  return self;
}

- (void*)contents {
  return _is_private ? nullptr : _memory;
}

- (void)dealloc {
  if (_memory != nullptr) std::memset(_memory, kFreed, _length);
  std::free(_memory);
  --counts.buffers;
  counts.buffer_bytes -= static_cast<long>(_length);
  delete _pending;
  [super dealloc];
}
@end

@implementation FakeCommandQueue
- (instancetype)init {
  if ((self = [super init])) {
    _mutex = new std::mutex;
    _committed = new std::deque<FakeCommandBuffer*>;
  }
  return self;
}

- (id<MTLCommandBuffer>)commandBuffer {
  return [[[FakeCommandBuffer alloc] initWithQueue:self] autorelease];
}

- (void)enqueue:(FakeCommandBuffer*)buffer {
  const std::lock_guard<std::mutex> lock(*_mutex);
  _committed->push_back([buffer retain]);
  while (_committed->size() > kMostUncompleted) [self runFirst];
}

- (void)runUntil:(FakeCommandBuffer*)last {
  const std::lock_guard<std::mutex> lock(*_mutex);
  while (!_committed->empty() &&
         (last == nil || [last status] == MTLCommandBufferStatusCommitted)) {
    [self runFirst];
  }
}

- (void)runFirst {
  FakeCommandBuffer* first = _committed->front();
  _committed->pop_front();
  @autoreleasepool {
    [first run];
    [first release];
  }
}

- (void)dealloc {
  [self runUntil:nil];
  delete _committed;
  delete _mutex;
  [super dealloc];
}
@end

@implementation FakeCommandBuffer
@synthesize commandQueue = _queue, error = _error;

- (instancetype)initWithQueue:(FakeCommandQueue*)queue {
  if ((self = [super init])) {
    _queue = [queue retain];
    _work = new std::vector<std::function<void()>>;
    _status = new std::atomic<int>(MTLCommandBufferStatusNotEnqueued);
    ++counts.command_buffers;
  }
  return self;
}

- (id<MTLDevice>)device {
  return [MTLCreateSystemDefaultDevice() autorelease];
}

- (MTLCommandBufferStatus)status {
  return static_cast<MTLCommandBufferStatus>(_status->load());
}

- (void)addWork:(std::function<void()>)work using:(std::vector<FakeBuffer*>)buffers {
  Require([self status] == MTLCommandBufferStatusNotEnqueued,
          "encode: the command buffer is committed already");
  std::vector<std::shared_ptr<void>> used;
  for (FakeBuffer* buffer : buffers) used.push_back(Used(buffer));
  _work->push_back([work = std::move(work), used = std::move(used)] {
    if (work) work();
  });
}

- (void)commit {
  Require([self status] == MTLCommandBufferStatusNotEnqueued,
          "commit: the command buffer is committed already");
  *_status = MTLCommandBufferStatusCommitted;
  [_queue enqueue:self];
}

- (void)waitUntilCompleted {
  Require([self status] != MTLCommandBufferStatusNotEnqueued,
          "waitUntilCompleted: the command buffer was never committed");
  [_queue runUntil:self];
}

- (void)run {
  const bool fails = !_work->empty() && fail_next.exchange(false);
  @try {
    if (!fails) {
      for (const auto& work : *_work) work();
    }
  } @catch (NSException* exception) {
    fake_abort(
        [[@"while a command buffer runs: " stringByAppendingString:[exception reason]] UTF8String]);
  }
  _work->clear();  // releases the buffers
  if (fails) {
    _error = [[NSError alloc] initWithDomain:@"Fake" code:1 userInfo:nil];
  }
  *_status = fails ? MTLCommandBufferStatusError : MTLCommandBufferStatusCompleted;
}

- (void)dealloc {
  const bool is_lost = !_work->empty() && [self status] == MTLCommandBufferStatusNotEnqueued;
  if (is_lost) fake_abort("a command buffer with work was never committed");
  --counts.command_buffers;
  delete _work;
  delete _status;
  [_error release];
  [_queue release];
  [super dealloc];
}
@end

@implementation MPSCommandBuffer
@synthesize rootCommandBuffer = _root;

+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)commandQueue {
  MPSCommandBuffer* buffer = [[[self alloc] init] autorelease];
  buffer->_root = [[commandQueue commandBuffer] retain];
  return buffer;
}

- (void)commitAndContinue {
  [_root commit];
  id<MTLCommandBuffer> next = [[[_root commandQueue] commandBuffer] retain];
  [_root release];
  _root = next;
}

- (id<MTLDevice>)device {
  return [_root device];
}

- (id<MTLCommandQueue>)commandQueue {
  return [_root commandQueue];
}

- (MTLCommandBufferStatus)status {
  return [_root status];
}

- (NSError*)error {
  return [_root error];
}

- (void)commit {
  [_root commit];
}

- (void)waitUntilCompleted {
  [_root waitUntilCompleted];
}

- (void)dealloc {
  [_root release];
  [super dealloc];
}
@end
