// A fake plugin with the interface of Apple's tensorflow-metal 1.2: a tensor's
// data is a whole id<MTLBuffer>. The stream is an object that owns a queue and a
// current command buffer. Kernels do not wait for their work.
#import <Metal/Metal.h>

#include "fake/fake.h"
#include "plugin.h"

namespace {

id<MTLDevice> Device() {
  static id<MTLDevice> const device = MTLCreateSystemDefaultDevice();
  return device;
}

}  // namespace

@interface MetalStreamWrapper : NSObject {
  dispatch_queue_t _queue;
  id<MTLCommandQueue> _commandQueue;
  id<MTLCommandBuffer> _current;
}
- (dispatch_queue_t)queue;
- (id<MTLCommandBuffer>)currentCommandBuffer;
- (void)commit;
- (void)commitAndWait;
- (void)finish;
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

- (id<MTLCommandBuffer>)currentCommandBuffer {
  [self requireOwnQueue];
  if (_current == nil) _current = [[_commandQueue commandBuffer] retain];
  return _current;
}

- (void)commit {
  [self requireOwnQueue];
  [_current commit];
  [_current release];
  _current = nil;
}

- (void)commitAndWait {
  [self commit];
  fake_finish(_commandQueue);
}

// Called by TensorFlow, when no kernel runs.
- (void)finish {
  if (_current != nil) {
    fake_abort("a kernel left the stream's command buffer uncommitted");
  }
  fake_finish(_commandQueue);
}

- (void)dealloc {
  [_commandQueue release];
  [super dealloc];
}
@end

namespace {

struct Abi {
  static constexpr bool kSubdivides = false;

  static void* Allocate(uint64_t size) {
    return [Device() newBufferWithLength:size > 0 ? size : 1 options:MTLResourceStorageModeShared];
  }
  static void Free(void* data) { [(id)data release]; }
  static char* Address(void* data) { return static_cast<char*>([(id<MTLBuffer>)data contents]); }
  static SP_Stream NewStream() { return (SP_Stream)[[MetalStreamWrapper alloc] init]; }
  static void DeleteStream(SP_Stream stream) { [(id)stream release]; }
  static void Finish(SP_Stream stream) {
    @autoreleasepool {
      auto wrapper = (MetalStreamWrapper*)stream;
      dispatch_sync([wrapper queue], ^{
        [wrapper finish];
      });
    }
  }
};

}  // namespace

extern "C" {
void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  plugin::Init<Abi>(params, status);
}
void TF_InitKernel() {}
}
