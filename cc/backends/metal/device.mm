#include "backends/metal/device.h"

#include <dispatch/dispatch.h>
#include <dlfcn.h>

#include <algorithm>
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
- (void)commitAndWait;
@end

namespace tf_lstm_ops::metal {
namespace {

Status OutOfMemory(size_t bytes) {
  return MakeStatus(Code::kResourceExhausted, "tf_lstm_ops: no Metal buffer of ", bytes, " bytes");
}

Status InternalError(NSString* reason) {
  return MakeStatus(Code::kInternal, "tf_lstm_ops: Metal failed: ",
                    reason ? [reason UTF8String] : "no reason given");
}

// The buffers of a program's ports. Owns one reference to each. A command buffer
// retains the buffers that its work uses, so these references may end before it.
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

// How MPSGraph compiles a graph: without its own choice between GPU, CPU and
// Neural Engine. Apple's plugin chooses the same.
MPSGraphExecutionDescriptor* OnGpu() {
  static MPSGraphExecutionDescriptor* const descriptor = [] {
    MPSGraphCompilationDescriptor* compilation = [[MPSGraphCompilationDescriptor alloc] init];
    compilation.optimizationLevel = MPSGraphOptimizationLevel0;
    MPSGraphExecutionDescriptor* execution = [[MPSGraphExecutionDescriptor alloc] init];
    execution.compilationDescriptor = compilation;
    [compilation release];
    return execution;
  }();
  return descriptor;
}

// Encodes a whole program. MPSGraph may commit what `commands` holds and go on in
// another root command buffer.
void Encode(const Program& program, const Buffers& arguments, const Buffers& results,
            MPSCommandBuffer* commands) {
  [program.graph() encodeToCommandBuffer:commands
                                   feeds:TensorData(program.arguments(), arguments)
                        targetOperations:nil
                       resultsDictionary:TensorData(program.results(), results)
                     executionDescriptor:OnGpu()];
}

// The first and the last root command buffer of a program.
struct Committed {
  id<MTLCommandBuffer> first, last;
};

// Encodes a program into a command buffer of its own and commits it.
Committed EncodeAlone(const Program& program, const Buffers& arguments, const Buffers& results,
                      id<MTLCommandQueue> queue) {
  MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  id<MTLCommandBuffer> first = [[[commands rootCommandBuffer] retain] autorelease];
  Encode(program, arguments, results, commands);
  [commands commit];
  return {first, [commands rootCommandBuffer]};
}

// The command buffers of a queue complete in order, so the last one is the last
// to complete.
Status Wait(const Committed& commands) {
  [commands.last waitUntilCompleted];
  for (id<MTLCommandBuffer> one : {commands.first, commands.last}) {
    if ([one status] == MTLCommandBufferStatusError) {
      return InternalError([[one error] localizedDescription]);
    }
  }
  return Status();
}

// The root command buffers of calls on Apple's stream that may not have completed. The plugin
// reports no failure of theirs, so a later call does.
class Unfinished {
 public:
  void Add(id<MTLCommandBuffer> commands) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (commands_.empty() || commands_.back() != commands) commands_.push_back([commands retain]);
  }

  // Forgets what has completed. Errors: Internal where a command buffer has failed.
  Status Check() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Status status;
    const auto has_ended = [&](id<MTLCommandBuffer> commands) {
      const bool failed = [commands status] == MTLCommandBufferStatusError;
      if (failed) status = InternalError([[commands error] localizedDescription]);
      const bool ended = failed || [commands status] == MTLCommandBufferStatusCompleted;
      if (ended) [commands release];
      return ended;
    };
    commands_.erase(std::remove_if(commands_.begin(), commands_.end(), has_ended), commands_.end());
    return status;
  }

 private:
  std::mutex mutex_;
  std::vector<id<MTLCommandBuffer>> commands_;
};

// The buffers of a call with Apple's plugin.
Status CollectBuffers(const Execution& execution, id<MTLDevice> device, Buffers* arguments,
                      Buffers* results) {
  for (const Program::Port& port : execution.program.arguments()) {
    const Memory& memory = execution.arguments[port.index];
    if (memory.on_host) {
      TF_LSTM_OPS_RETURN_IF_ERROR(arguments->Copy(device, memory.data, port.bytes));
    } else {
      arguments->Share((id<MTLBuffer>)memory.data);
    }
  }
  for (const Program::Port& port : execution.program.results()) {
    results->Share((id<MTLBuffer>)execution.results[port.index].data);
  }
  return Status();
}

// With Apple's plugin. Must run on the stream's queue.
//
// The open command buffer may hold the work that computes the arguments. `commit`
// does not always commit it: the stream collects the work of several kernels. The
// program is therefore encoded into the same command buffer.
Status RunOnStream(const Execution& execution, id<TfLstmOpsMetalStream> stream) {
  id<MTLCommandBuffer> open = [stream currentCommandBuffer];
  Buffers arguments, results;
  TF_LSTM_OPS_RETURN_IF_ERROR(CollectBuffers(execution, [open device], &arguments, &results));
  static auto* const unfinished = new Unfinished;
  TF_LSTM_OPS_RETURN_IF_ERROR(unfinished->Check());
  if ([(NSObject*)open isKindOfClass:[MPSCommandBuffer class]]) {
    auto* const commands = (MPSCommandBuffer*)open;
    unfinished->Add([commands rootCommandBuffer]);
    Encode(execution.program, arguments, results, commands);
    unfinished->Add([commands rootCommandBuffer]);
    [stream commit];
    return Status();
  }
  // A stream with command buffers of another class would not know of the root
  // command buffer in which MPSGraph goes on.
  id<MTLCommandQueue> queue = [open commandQueue];
  [stream commitAndWait];
  return Wait(EncodeAlone(execution.program, arguments, results, queue));
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

// tensorflow-metal-plugin runs asynchronously where it can, unless
// TF_METAL_SYNCHRONOUS says otherwise. It can if TensorFlow has certain functions,
// as TensorFlow 2.22 does.
Status CheckSynchronous() {
  const char* synchronous = std::getenv("TF_METAL_SYNCHRONOUS");
  const bool can_be_asynchronous = dlsym(RTLD_DEFAULT, "TF_AssignRefVariable") != nullptr;
  const bool is_asynchronous =
      synchronous ? std::strcmp(synchronous, "0") == 0 : can_be_asynchronous;
  if (!is_asynchronous) return Status();
  return MakeStatus(Code::kUnimplemented,
                    "tf_lstm_ops: tensorflow-metal-plugin runs asynchronously with this "
                    "TensorFlow or because of TF_METAL_SYNCHRONOUS=0. Set "
                    "TF_METAL_SYNCHRONOUS=1 before TensorFlow is imported");
}

Status RunOnHostMemory(const Execution& execution) {
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSynchronous());
  static OwnQueue* const own = new OwnQueue;
  Buffers arguments, results;
  for (const Program::Port& port : execution.program.arguments()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(
        arguments.Copy(own->device, execution.arguments[port.index].data, port.bytes));
  }
  for (const Program::Port& port : execution.program.results()) {
    TF_LSTM_OPS_RETURN_IF_ERROR(results.Make(own->device, port.bytes));
  }
  Committed commands = {};
  {
    const std::lock_guard<std::mutex> lock(own->mutex);
    commands = EncodeAlone(execution.program, arguments, results, own->queue);
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(Wait(commands));
  size_t n = 0;
  for (const Program::Port& port : execution.program.results()) {
    std::memcpy(execution.results[port.index].data, [results[n++] contents], port.bytes);
  }
  return Status();
}

}  // namespace

bool NeedsStream() { return NSClassFromString(@"MetalStreamWrapper") != nil; }

Status Execute(void* stream, const Program& program, const std::vector<Memory>& arguments,
               const std::vector<Memory>& results) {
  const Execution execution = {program, arguments, results};
  return NeedsStream() ? RunWithApplePlugin(stream, execution) : RunOnHostMemory(execution);
}

bool IsMacOsAtLeast(int major, int minor) {
#if defined(__APPLE__)
  return [[NSProcessInfo processInfo]
      isOperatingSystemAtLeastVersion:NSOperatingSystemVersion{major, minor, 0}];
#else
  // The emulation is that of a new macOS, unless a test sets the variable.
  const char* version = std::getenv("FAKE_MACOS");
  return version == nullptr || std::atof(version) >= major + minor / 10.0;
#endif
}

}  // namespace tf_lstm_ops::metal
