#include "backends/metal/device.h"

#include <dispatch/dispatch.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

// The methods of tensorflow-metal's stream, from Apple's sample "Customizing a TensorFlow
// operation".
@protocol TfLstmOpsMetalStream
- (dispatch_queue_t)queue;
- (id<MTLCommandBuffer>)currentCommandBuffer;
- (void)commit;
@end

namespace tf_lstm_ops::metal {
namespace {

Status InternalError(NSString* reason) {
  return MakeStatus(Code::kInternal, "tf_lstm_ops: Metal failed: ",
                    reason ? [reason UTF8String] : "no reason given");
}

// Adds a new buffer. MPSGraph's command buffers retain those that their work uses.
Status AddNew(id<MTLBuffer> buffer, size_t bytes, NSMutableArray* buffers) {
  if (buffer == nil) {
    return MakeStatus(Code::kResourceExhausted, "tf_lstm_ops: no Metal buffer of ", bytes,
                      " bytes");
  }
  [buffers addObject:buffer];
  [buffer release];
  return Status();
}

// The buffers of a program's ports, in their order.
struct Buffers {
  NSMutableArray* arguments = [NSMutableArray arrayWithCapacity:0];
  NSMutableArray* results = [NSMutableArray arrayWithCapacity:0];
};

// Makes or finds the buffers of a call. Tensors that are not in host memory are buffers themselves.
Status CollectBuffers(const Program& program, const std::vector<Memory>& arguments,
                      const std::vector<Memory>& results, bool on_host, id<MTLDevice> device,
                      Buffers* buffers) {
  for (const Program::Port& port : program.arguments()) {
    const Memory& memory = arguments[port.index];
    if (on_host || memory.on_host) {
      id<MTLBuffer> copy = [device newBufferWithBytes:memory.data
                                               length:port.bytes
                                              options:MTLResourceStorageModeShared];
      TF_LSTM_OPS_RETURN_IF_ERROR(AddNew(copy, port.bytes, buffers->arguments));
    } else {
      [buffers->arguments addObject:(id<MTLBuffer>)memory.data];
    }
  }
  for (const Program::Port& port : program.results()) {
    if (on_host) {
      id<MTLBuffer> made = [device newBufferWithLength:port.bytes
                                               options:MTLResourceStorageModeShared];
      TF_LSTM_OPS_RETURN_IF_ERROR(AddNew(made, port.bytes, buffers->results));
    } else {
      [buffers->results addObject:(id<MTLBuffer>)results[port.index].data];
    }
  }
  return Status();
}

NSDictionary* TensorData(const std::vector<Program::Port>& ports, NSArray* buffers) {
  NSMutableDictionary* all = [NSMutableDictionary dictionaryWithCapacity:ports.size()];
  for (size_t n = 0; n < ports.size(); ++n) {
    MPSGraphTensorData* data =
        [[MPSGraphTensorData alloc] initWithMTLBuffer:[buffers objectAtIndex:n]
                                                shape:ports[n].shape
                                             dataType:ports[n].type];
    [all setObject:data forKey:ports[n].tensor];
    [data release];
  }
  return all;
}

// How MPSGraph compiles a graph: without its own choice between GPU, CPU and Neural Engine. Apple's
// plugin chooses the same.
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

// Root command buffers that may not have completed.
class Unfinished {
 public:
  ~Unfinished() {
    for (id<MTLCommandBuffer> commands : commands_) [commands release];
  }

  void Add(id<MTLCommandBuffer> commands) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (commands_.empty() || commands_.back() != commands) commands_.push_back([commands retain]);
  }

  // Forgets what has completed. Errors: Internal where a command buffer has failed.
  Status Check(bool wait) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Status status;
    const auto has_ended = [&](id<MTLCommandBuffer> commands) {
      if (wait) [commands waitUntilCompleted];
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

// Encodes a whole program. MPSGraph may commit what `commands` holds and go on in another root
// command buffer. Adds the first and the last one to `unfinished`.
void Encode(const Program& program, const Buffers& buffers, MPSCommandBuffer* commands,
            Unfinished* unfinished) {
  unfinished->Add([commands rootCommandBuffer]);
  [program.graph() encodeToCommandBuffer:commands
                                   feeds:TensorData(program.arguments(), buffers.arguments)
                        targetOperations:nil
                       resultsDictionary:TensorData(program.results(), buffers.results)
                     executionDescriptor:OnGpu()];
  unfinished->Add([commands rootCommandBuffer]);
}

// With Apple's plugin. Must run on the stream's queue.
//
// The open command buffer may hold the work that computes the arguments. `commit` does not always
// commit it: the stream collects the work of several kernels. The program is therefore encoded into
// the same command buffer. The plugin reports no failure of it, so a later call does.
Status RunOnStream(id<TfLstmOpsMetalStream> stream, const Program& program,
                   const std::vector<Memory>& arguments, const std::vector<Memory>& results) {
  static auto* const unfinished = new Unfinished;
  TF_LSTM_OPS_RETURN_IF_ERROR(unfinished->Check(/*wait=*/false));
  id<MTLCommandBuffer> open = [stream currentCommandBuffer];
  if (![(NSObject*)open isKindOfClass:[MPSCommandBuffer class]]) {
    return MakeStatus(Code::kUnimplemented,
                      "tf_lstm_ops: the command buffer of this tensorflow-metal is no "
                      "MPSCommandBuffer; set TF_LSTM_OPS_GPU=0");
  }
  Buffers buffers;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      CollectBuffers(program, arguments, results, false, [open device], &buffers));
  Encode(program, buffers, (MPSCommandBuffer*)open, unfinished);
  [stream commit];
  return Status();
}

// The queue for tensors in host memory. The mutex lets one call encode at a time, since threads
// must not encode one graph at the same time.
struct OwnQueue {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLCommandQueue> queue = [device newCommandQueue];
  std::mutex mutex;
};

// tensorflow-metal-plugin runs asynchronously where it can, unless TF_METAL_SYNCHRONOUS says
// otherwise. It can if TensorFlow has certain functions, as TensorFlow 2.22 does.
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

Status RunOnHostMemory(const Program& program, const std::vector<Memory>& arguments,
                       const std::vector<Memory>& results) {
  TF_LSTM_OPS_RETURN_IF_ERROR(CheckSynchronous());
  static OwnQueue* const own = new OwnQueue;
  Buffers buffers;
  TF_LSTM_OPS_RETURN_IF_ERROR(
      CollectBuffers(program, arguments, results, true, own->device, &buffers));
  Unfinished unfinished;
  {
    const std::lock_guard<std::mutex> lock(own->mutex);
    MPSCommandBuffer* commands = [MPSCommandBuffer commandBufferFromCommandQueue:own->queue];
    Encode(program, buffers, commands, &unfinished);
    [commands commit];
  }
  TF_LSTM_OPS_RETURN_IF_ERROR(unfinished.Check(/*wait=*/true));
  NSUInteger n = 0;
  for (const Program::Port& port : program.results()) {
    id<MTLBuffer> buffer = [buffers.results objectAtIndex:n++];
    std::memcpy(results[port.index].data, [buffer contents], port.bytes);
  }
  return Status();
}

}  // namespace

bool NeedsStream() { return NSClassFromString(@"MetalStreamWrapper") != nil; }

Status Execute(void* handle, const Program& program, const std::vector<Memory>& arguments,
               const std::vector<Memory>& results) {
  if (!NeedsStream()) return RunOnHostMemory(program, arguments, results);
  auto stream = (id<TfLstmOpsMetalStream>)handle;
  // A block copies the objects that it captures; these pointers stand for them.
  const Program* to_run = &program;
  const std::vector<Memory>*from = &arguments, *to = &results;
  __block Status status;
  dispatch_sync([stream queue], ^{
    @autoreleasepool {
      @try {
        status = RunOnStream(stream, *to_run, *from, *to);
      } @catch (NSException* exception) {
        status = InternalError([exception reason]);
      }
    }
  });
  return status;
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
