#include "backends/metal/device.h"

#include <dispatch/dispatch.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

// The methods of tensorflow-metal's stream, from Apple's sample "Customizing a
// TensorFlow operation".
@protocol TfLstmOpsMetalStream
- (dispatch_queue_t)queue;
- (id<MTLCommandBuffer>)currentCommandBuffer;
- (void)commit;
@end

namespace tf_lstm_ops::metal {
namespace {

Status OutOfMemory(size_t bytes) {
  return MakeStatus(Code::kResourceExhausted, "tf_lstm_ops: no Metal buffer of ", bytes, " bytes");
}

Status InternalError(NSString* reason) {
  return MakeStatus(Code::kInternal, "tf_lstm_ops: Metal failed: ", [reason UTF8String]);
}

// The buffers of a program's ports. Owns one reference to each.
class Buffers {
 public:
  Buffers() = default;
  ~Buffers() {
    for (id<MTLBuffer> buffer : buffers_) [buffer release];
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  id<MTLBuffer> operator[](size_t n) const { return buffers_[n]; }

  void Share(id<MTLBuffer> buffer) { buffers_.push_back([buffer retain]); }
  Status Copy(id<MTLDevice> device, const void* data, size_t bytes) {
    return Own([device newBufferWithBytes:data length:bytes options:MTLResourceStorageModeShared],
               bytes);
  }
  Status Make(id<MTLDevice> device, size_t bytes) {
    return Own([device newBufferWithLength:bytes options:MTLResourceStorageModeShared], bytes);
  }

 private:
  Status Own(id<MTLBuffer> buffer, size_t bytes) {
    if (buffer == nil) return OutOfMemory(bytes);
    buffers_.push_back(buffer);
    return Status();
  }

  std::vector<id<MTLBuffer>> buffers_;
};

struct Execution {
  const Program& program;
  const std::vector<Memory>& arguments;
  const std::vector<Memory>& results;
};

NSDictionary* TensorData(const std::vector<Program::Port>& ports, const Buffers& buffers) {
  NSMutableDictionary* all = [NSMutableDictionary dictionaryWithCapacity:ports.size()];
  for (size_t n = 0; n < ports.size(); ++n) {
    MPSGraphTensorData* data = [[MPSGraphTensorData alloc] initWithMTLBuffer:buffers[n]
                                                                       shape:ports[n].shape
                                                                    dataType:ports[n].type];
    [all setObject:data forKey:ports[n].tensor];
    [data release];
  }
  return all;
}

// An uncommitted command buffer of `queue` that holds the whole program.
MPSCommandBuffer* Encode(const Program& program, const Buffers& arguments, const Buffers& results,
                         id<MTLCommandQueue> queue) {
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  [program.graph() encodeToCommandBuffer:commands
                                   feeds:TensorData(program.arguments(), arguments)
                        targetOperations:nil
                       resultsDictionary:TensorData(program.results(), results)
                     executionDescriptor:nil];
  return commands;
}

// With Apple's plugin. Must run on the stream's queue.
Status RunOnStream(const Execution& execution, id<TfLstmOpsMetalStream> stream) {
  // MPSGraph may commit a command buffer and continue in another one. The
  // stream would not know of the other one. The graph therefore gets its own
  // command buffer between two of the stream's.
  id<MTLCommandBuffer> before = [stream currentCommandBuffer];
  id<MTLCommandQueue> queue = [before commandQueue];
  Buffers arguments, results;
  for (const Program::Port& port : execution.program.arguments()) {
    const Memory& memory = execution.arguments[port.index];
    if (memory.on_host) {
      TF_LSTM_OPS_RETURN_IF_ERROR(arguments.Copy([before device], memory.data, port.bytes));
    } else {
      arguments.Share((id<MTLBuffer>)memory.data);
    }
  }
  for (const Program::Port& port : execution.program.results()) {
    results.Share((id<MTLBuffer>)execution.results[port.index].data);
  }
  [stream commit];
  [Encode(execution.program, arguments, results, queue) commit];
  // Creates an empty command buffer. A wait for the stream waits for this
  // buffer, and therefore for the graph before it.
  [stream currentCommandBuffer];
  [stream commit];
  return Status();
}

Status RunWithApplePlugin(void* handle, const Execution& execution) {
  auto stream = (id<TfLstmOpsMetalStream>)handle;
  const Execution* pointer = &execution;  // a block would copy the object
  __block Status status;
  dispatch_sync([stream queue], ^{
    @autoreleasepool {
      @try {
        status = RunOnStream(*pointer, stream);
      } @catch (NSException* exception) {
        status = InternalError([exception reason]);
      }
    }
  });
  return status;
}

// The queue for tensors in host memory. The mutex lets one call encode at a
// time, since threads must not encode one graph at the same time.
struct OwnQueue {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLCommandQueue> queue = [device newCommandQueue];
  std::mutex mutex;
};

Status RunOnHostMemory(const Execution& execution) {
  const char* synchronous = std::getenv("TF_METAL_SYNCHRONOUS");
  if (synchronous && std::strcmp(synchronous, "0") == 0) {
    return MakeStatus(Code::kUnimplemented,
                      "tf_lstm_ops: tensorflow-metal-plugin runs asynchronously, since "
                      "TF_METAL_SYNCHRONOUS=0; this package needs it to be unset or 1");
  }
  static OwnQueue* const own = new OwnQueue;
  Buffers arguments, results;
  for (const Program::Port& port : execution.program.arguments()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        arguments.Copy(own->device, execution.arguments[port.index].data, port.bytes));
  }
  for (const Program::Port& port : execution.program.results()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(results.Make(own->device, port.bytes));
  }
  id<MTLCommandBuffer> last = nil;
  {
    const std::lock_guard<std::mutex> lock(own->mutex);
    MPSCommandBuffer* commands = Encode(execution.program, arguments, results, own->queue);
    last = [commands rootCommandBuffer];
    [commands commit];
  }
  [last waitUntilCompleted];
  if ([last status] == MTLCommandBufferStatusError) {
    return InternalError([[last error] localizedDescription]);
  }
  size_t n = 0;
  for (const Program::Port& port : execution.program.results()) {
    std::memcpy(execution.results[port.index].data, [results[n++] contents], port.bytes);
  }
  return Status();
}

Status RunWithOtherPlugin(const Execution& execution) {
  @autoreleasepool {
    @try {
      return RunOnHostMemory(execution);
    } @catch (NSException* exception) {
      return InternalError([exception reason]);
    }
  }
}

}  // namespace

bool NeedsStream() { return NSClassFromString(@"MetalStreamWrapper") != nil; }

Status Execute(void* stream, const Program& program, const std::vector<Memory>& arguments,
               const std::vector<Memory>& results) {
  const Execution execution = {program, arguments, results};
  return NeedsStream() ? RunWithApplePlugin(stream, execution) : RunWithOtherPlugin(execution);
}

bool HasBFloat16() {
#if defined(__APPLE__)
  return [[NSProcessInfo processInfo]
      isOperatingSystemAtLeastVersion:NSOperatingSystemVersion{14, 0, 0}];
#else
  return true;
#endif
}

}  // namespace tf_lstm_ops::metal
