// What the fake frameworks refuse, when they run work, and what they compute where the kernels and
// the fakes could be wrong together: mistakes that fail only on a Mac, or only sometimes.
// test_fake_rules.py calls each rule in a process of its own. A rule that does not hold ends it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fake/fake.h"
#include "fake/mpsgraph.h"

using fake::FromShape;
using fake::Shape;

namespace {

using Numbers = std::vector<float>;

void Expect(bool holds, const std::string& what) {
  if (!holds) fake_abort(what.c_str());
}

void ExpectClose(const Numbers& got, const Numbers& want, const char* what) {
  Expect(got.size() == want.size(), what);
  for (size_t k = 0; k < got.size(); ++k) {
    const bool same = got[k] == want[k] || std::abs(got[k] - want[k]) < 1e-6F * std::abs(want[k]);
    Expect(same || (std::isnan(got[k]) && std::isnan(want[k])),
           std::string(what) + ": " + std::to_string(got[k]) + ", not " + std::to_string(want[k]));
  }
}

// The expression must raise an exception whose reason begins so.
#define REFUSED(beginning, expression)                                      \
  do {                                                                      \
    std::string reason = "no exception";                                    \
    @try {                                                                  \
      expression;                                                           \
    } @catch (NSException * exception) {                                    \
      reason = [[exception reason] UTF8String];                             \
    }                                                                       \
    Expect(reason.rfind(beginning, 0) == 0, reason + ", not " + beginning); \
  } while (false)

id<MTLDevice> Device() {
  static id<MTLDevice> const device = MTLCreateSystemDefaultDevice();
  return device;
}

id<MTLBuffer> Buffer(const Numbers& values) {
  return [Device() newBufferWithBytes:values.data()
                               length:values.size() * sizeof(float)
                              options:MTLResourceStorageModeShared];
}

Numbers Content(id<MTLBuffer> buffer) {
  Numbers values([buffer length] / sizeof(float));
  std::memcpy(values.data(), [buffer contents], [buffer length]);
  return values;
}

MPSGraphTensorData* Data(id<MTLBuffer> buffer, const Shape& shape) {
  return [[[MPSGraphTensorData alloc] initWithMTLBuffer:buffer
                                                  shape:FromShape(shape)
                                               dataType:MPSDataTypeFloat32] autorelease];
}

// A graph with its feeds.
struct Example {
  MPSGraph* graph = [[[MPSGraph alloc] init] autorelease];
  id<MTLCommandQueue> queue = [Device() newCommandQueue];
  NSMutableDictionary* feeds = [NSMutableDictionary dictionaryWithCapacity:1];

  MPSGraphTensor* Placeholder(const Shape& shape, MPSDataType type = MPSDataTypeFloat32) {
    return [graph placeholderWithShape:FromShape(shape) dataType:type name:nil];
  }
  MPSGraphTensor* Fed(id<MTLBuffer> buffer, const Shape& shape) {
    MPSGraphTensor* tensor = Placeholder(shape);
    [feeds setObject:Data(buffer, shape) forKey:tensor];
    return tensor;
  }
  MPSGraphTensor* Tanh(MPSGraphTensor* tensor) { return [graph tanhWithTensor:tensor name:nil]; }

  void EncodeTo(MPSCommandBuffer* commands, MPSGraphTensor* result, MPSGraphTensorData* data,
                MPSGraphOptimization level = MPSGraphOptimizationLevel0) {
    auto* execution = [[[MPSGraphExecutionDescriptor alloc] init] autorelease];
    execution.compilationDescriptor = [[[MPSGraphCompilationDescriptor alloc] init] autorelease];
    execution.compilationDescriptor.optimizationLevel = level;
    [graph encodeToCommandBuffer:commands
                           feeds:feeds
                targetOperations:nil
               resultsDictionary:[NSDictionary dictionaryWithObject:data forKey:result]
             executionDescriptor:execution];
  }
  MPSCommandBuffer* Commands() { return [MPSCommandBuffer commandBufferFromCommandQueue:queue]; }
  // An uncommitted command buffer with the graph.
  MPSCommandBuffer* Encoded(MPSGraphTensor* result, MPSGraphTensorData* data) {
    MPSCommandBuffer* commands = Commands();
    EncodeTo(commands, result, data);
    return commands;
  }
  // The values of a tensor.
  Numbers Value(MPSGraphTensor* tensor) {
    const Shape shape = fake::ToShape(tensor.shape);
    id<MTLBuffer> buffer = Buffer(Numbers(fake::SizeOf(shape)));
    MPSCommandBuffer* commands = Encoded(tensor, Data(buffer, shape));
    [commands commit];
    [commands waitUntilCompleted];
    return Content(buffer);
  }
};

// tanh of three ones, not committed.
struct TanhExample : Example {
  id<MTLBuffer> input = Buffer({1, 1, 1}), output = Buffer({0, 0, 0});
  MPSGraphTensor* x = Fed(input, {3});
  MPSGraphTensor* y = Tanh(x);
  MPSCommandBuffer* commands = Encoded(y, Data(output, {3}));

  void ExpectOutput(float want, const char* what) {
    ExpectClose(Content(output), {want, want, want}, what);
  }
};

const float kTanh1 = std::tanh(1.0F);

}  // namespace

extern "C" {

// For all objects of a process. Called before the rule.
void* OpenPool() { return [[NSAutoreleasePool alloc] init]; }

void WrongOperandsAreRefused() {
  Example e;
  MPSGraph* g = e.graph;
  MPSGraphTensor *a = e.Placeholder({2, 3}), *b = e.Placeholder({2});
  MPSGraphTensor* half = e.Placeholder({2}, MPSDataTypeFloat16);
  REFUSED("addition: Float32[2,3] and Float32[2] do not broadcast",
          [g additionWithPrimaryTensor:a secondaryTensor:b name:nil]);
  REFUSED("addition: takes Float32 but got Float16[2]", [g additionWithPrimaryTensor:b
                                                                     secondaryTensor:half
                                                                                name:nil]);
  REFUSED("a tensor of another graph: Float32[2]", e.Tanh(Example().Placeholder({2})));
  REFUSED("a tensor is nil", e.Tanh(nil));
  REFUSED("matrixMultiplication: Float32[2,3] times Float32[2,3]",
          [g matrixMultiplicationWithPrimaryTensor:a secondaryTensor:a name:nil]);
  REFUSED("slice: Float32[2,3], start 2, length 2 along axis 1", [g sliceTensor:a
                                                                      dimension:1
                                                                          start:2
                                                                         length:2
                                                                           name:nil]);
  REFUSED("reductionSum: axis 2 of Float32[2,3]", [g reductionSumWithTensor:a axis:2 name:nil]);
  REFUSED("a tensor of shape [0,3]: every size must be positive", e.Placeholder({0, 3}));
}

void WrongDataIsRefused() {
  Example e;
  id<MTLBuffer> input = Buffer({1, 1, 1, 1, 1, 1}), output = Buffer({0, 0, 0, 0, 0, 0});
  MPSGraphTensor* y = e.Tanh(e.Fed(input, {2, 3}));
  REFUSED("results: data Float32[3,2] for a tensor", e.Encoded(y, Data(output, {3, 2})));
  REFUSED("results: a buffer is fed, or written twice", e.Encoded(y, Data(input, {2, 3})));
  REFUSED("MPSGraphTensorData: Float32[7] in a buffer of 24 bytes", Data(output, {7}));
  REFUSED("MPSGraphTensorData: the buffer is nil", Data(nil, {2, 3}));
  REFUSED("encode: the optimisation level is not 0",
          e.EncodeTo(e.Commands(), y, Data(output, {2, 3}), MPSGraphOptimizationLevel1));
}

void BuffersAreThoseOfMetal() {
  Expect([Device() newBufferWithLength:0 options:MTLResourceStorageModeShared] == nil, "empty");
  id<MTLBuffer> hidden = [Device() newBufferWithLength:4 options:MTLResourceStorageModePrivate];
  Expect([hidden contents] == nullptr, "the CPU reads private storage");
  id<MTLBuffer> fresh = [Device() newBufferWithLength:4 options:MTLResourceStorageModeShared];
  Expect(std::isnan(Content(fresh)[0]), "new memory is a number");
}

void WorkRunsWhenItIsWaitedFor() {
  TanhExample e;
  e.ExpectOutput(NAN, "encoded");
  [e.commands commit];
  e.ExpectOutput(NAN, "committed");
  [e.commands waitUntilCompleted];
  e.ExpectOutput(kTanh1, "waited for");
}

void WorkRunsBeforeALaterCommandBufferOfItsQueue() {
  TanhExample e;
  [e.commands commit];
  ExpectClose(e.Value(e.y), {kTanh1, kTanh1, kTanh1}, "the later one");
  e.ExpectOutput(kTanh1, "the first one");
}

void WorkReadsWhatIsThereWhenItRuns() {
  TanhExample e;
  std::memset([e.input contents], 0, [e.input length]);
  [e.commands commit];
  [e.commands waitUntilCompleted];
  e.ExpectOutput(0, "tanh of 0");
}

void CommandBuffersAreUsedOnce() {
  TanhExample e;
  MPSCommandBuffer* commands = e.commands;
  REFUSED("waitUntilCompleted: the command buffer was never committed",
          [commands waitUntilCompleted]);
  [commands commit];
  REFUSED("commit: the command buffer is committed already", [commands commit]);
}

// As MPSGraph may: what was the root before is not the root after.
void EncodingCommitsNowAndThen() {
  TanhExample e;
  [e.commands commit];
  int changed = 0;
  for (int n = 0; n < 6; ++n) {
    MPSCommandBuffer* commands = e.Commands();
    const id<MTLCommandBuffer> before = [commands rootCommandBuffer];
    e.EncodeTo(commands, e.y, Data(Buffer({0, 0, 0}), {3}));
    changed += [commands rootCommandBuffer] != before;
    [commands commit];
  }
  Expect(changed == 2, "the root changed " + std::to_string(changed) + " times, not 2");
}

void FailedCommandBuffersComputeNothing() {
  TanhExample e;
  fake_fail_next_command_buffer();
  [e.commands commit];
  [e.commands waitUntilCompleted];
  Expect([e.commands status] == MTLCommandBufferStatusError && [e.commands error] != nil, "status");
  e.ExpectOutput(NAN, "failed");
}

void LiveObjectsAreCounted() {
  TanhExample e;
  for (const char* name : {"graphs", "tensor data", "buffers", "buffer bytes", "command buffers"}) {
    Expect(fake_count(name) > 0, std::string("not counted: ") + name);
  }
  [e.commands commit];
}

// This rule ends the process.
void LostWorkEndsTheProcess() {
  @autoreleasepool {
    TanhExample e;
  }
}

void ViewsAreNotWritten() {
  Example e;
  MPSGraphTensor* y = e.Tanh(e.Fed(Buffer({0, 1}), {1, 2}));
  MPSGraphTensor* view = [e.graph transposeTensor:y dimension:0 withDimension:1 name:nil];
  ExpectClose(e.Value(view), {NAN, NAN}, "a view");
  ExpectClose(e.Value([e.graph identityWithTensor:view name:nil]), {0, kTanh1}, "a copy");
}

// Ties to even, overflow to infinity, subnormal numbers.
void CastsRound() {
  Example e;
  const float tiny = std::ldexp(1.25F, -24);
  MPSGraphTensor* x = e.Fed(Buffer({2049, 2051, 257, 259, 7e4F, tiny, NAN}), {7});
  const auto rounded = [&](uint32_t type) {
    MPSGraphTensor* cast = [e.graph castTensor:x toType:static_cast<MPSDataType>(type) name:nil];
    return e.Value([e.graph castTensor:cast toType:MPSDataTypeFloat32 name:nil]);
  };
  ExpectClose(rounded(MPSDataTypeFloat16),
              {2048, 2052, 257, 259, INFINITY, std::ldexp(1.0F, -24), NAN}, "half");
  ExpectClose(rounded(MPSDataTypeAlternateEncodingBit | MPSDataTypeFloat16),
              {2048, 2048, 256, 260, 70144, tiny, NAN}, "bfloat16");
}

// One step of one unit, from its pre-activations. The z state can be hidden.
void TheForgetGateMayBeLast() {
  Example e;
  MPSGraphLSTMDescriptor* d = [MPSGraphLSTMDescriptor descriptor];  // no activation functions
  const auto lstm = [&](int result) {
    id<MTLBuffer> z = Buffer({2, 3, 5, 7});
    NSArray* results = [e.graph LSTMWithSourceTensor:e.Fed(z, {1, 1, 4})
                                     recurrentWeight:e.Fed(z, {4, 1})
                                         inputWeight:nil
                                                bias:nil
                                           initState:nil
                                            initCell:e.Fed(Buffer({11}), {1, 1})
                                                mask:nil
                                            peephole:nil
                                          descriptor:d
                                                name:nil];
    return e.Value([results objectAtIndex:result]);
  };
  d.forgetGateLast = d.training = YES;
  REFUSED("LSTM: training without produceCell", lstm(0));
  d.produceCell = YES;
  ExpectClose(lstm(1), {5 * 11 + 2 * 3}, "the cell state");
  ExpectClose(lstm(0), {7 * (5 * 11 + 2 * 3)}, "the output");
  ExpectClose(lstm(2), {2, 3, 5, 7}, "the z state");
  setenv("FAKE_OPAQUE_Z", "1", 1);
  Expect(lstm(2)[0] != 2, "the z state is not hidden");
}

}  // extern "C"
