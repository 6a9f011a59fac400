#include "backends/metal/device.h"

#include <dispatch/dispatch.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

// What tensorflow-metal's stream answers to, from Apple's sample "Customizing a
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

// Buffers of a program's ports, each owned; released with the object.
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

struct Call {
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

// A command buffer of `queue` with the whole program in it, not committed.
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

// With Apple's plugin. On the stream's queue.
Status RunOnStream(const Call& call, id<TfLstmOpsMetalStream> stream) {
  // MPSGraph may commit a command buffer and go on in another, of which the
  // stream would not know: the graph gets one of its own, between the stream's.
  id<MTLCommandBuffer> before = [stream currentCommandBuffer];
  id<MTLCommandQueue> queue = [before commandQueue];
  Buffers arguments, results;
  for (const Program::Port& port : call.program.arguments()) {
    const Memory& memory = call.arguments[port.index];
    if (memory.on_host) {
      TF_LSTM_OPS_RETURN_IF_ERROR(arguments.Copy([before device], memory.data, port.bytes));
    } else {
      arguments.Share((id<MTLBuffer>)memory.data);
    }
  }
  for (const Program::Port& port : call.program.results()) {
    results.Share((id<MTLBuffer>)call.results[port.index].data);
  }
  [stream commit];
  [Encode(call.program, arguments, results, queue) commit];
  // An empty one: who waits for the stream waits for the graph.
  [stream currentCommandBuffer];
  [stream commit];
  return Status();
}

Status RunWithApplePlugin(const tf::KernelContext& context, const Call& call) {
  SP_Stream handle = nullptr;
  TF_LSTM_OPS_RETURN_IF_ERROR(context.Stream(&handle));
  auto stream = (id<TfLstmOpsMetalStream>)handle;
  const Call* pointer = &call;  // a block would copy the object
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

// The queue for tensors of the host. Calls encode one at a time, as MPSGraph
// demands of those that share a graph.
struct OwnQueue {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLCommandQueue> queue = [device newCommandQueue];
  std::mutex mutex;
};

Status RunOnHostMemory(const Call& call) {
  const char* synchronous = std::getenv("TF_METAL_SYNCHRONOUS");
  if (synchronous && std::strcmp(synchronous, "0") == 0) {
    return MakeStatus(Code::kUnimplemented,
                      "tf_lstm_ops: tensorflow-metal-plugin runs asynchronously, since "
                      "TF_METAL_SYNCHRONOUS=0; this package needs it to be unset or 1");
  }
  static OwnQueue* const own = new OwnQueue;
  Buffers arguments, results;
  for (const Program::Port& port : call.program.arguments()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        arguments.Copy(own->device, call.arguments[port.index].data, port.bytes));
  }
  for (const Program::Port& port : call.program.results()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(results.Make(own->device, port.bytes));
  }
  id<MTLCommandBuffer> last = nil;
  {
    const std::lock_guard<std::mutex> lock(own->mutex);
    MPSCommandBuffer* commands = Encode(call.program, arguments, results, own->queue);
    last = [commands rootCommandBuffer];
    [commands commit];
  }
  [last waitUntilCompleted];
  if ([last status] == MTLCommandBufferStatusError) {
    return InternalError([[last error] localizedDescription]);
  }
  size_t n = 0;
  for (const Program::Port& port : call.program.results()) {
    std::memcpy(call.results[port.index].data, [results[n++] contents], port.bytes);
  }
  return Status();
}

Status RunWithOtherPlugin(const Call& call) {
  @autoreleasepool {
    @try {
      return RunOnHostMemory(call);
    } @catch (NSException* exception) {
      return InternalError([exception reason]);
    }
  }
}

}  // namespace

Status Execute(const tf::KernelContext& context, const Program& program,
               const std::vector<Memory>& arguments, const std::vector<Memory>& results) {
  const Call call = {program, arguments, results};
  const bool is_apples = NSClassFromString(@"MetalStreamWrapper") != nil;
  return is_apples ? RunWithApplePlugin(context, call) : RunWithOtherPlugin(call);
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
