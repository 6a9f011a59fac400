// The fake classes that implement Metal's protocols.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_METAL_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_METAL_H_

#import <Metal/Metal.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fake.h"

// Counts of live objects. Tests use them to find leaks.
namespace fake {
struct Counts {
  std::atomic<long> graphs{0}, tensor_data{0}, buffers{0}, buffer_bytes{0}, command_buffers{0};
};
extern Counts counts;
}  // namespace fake

// Retains an object as long as a copy of the result exists.
std::shared_ptr<void> Retained(id object);

@interface FakeBuffer : NSObject <MTLBuffer> {
 @public
  NSUInteger _length;
  char* _memory;
  bool _is_private;            // the CPU cannot read or write it
  std::atomic<int>* _pending;  // number of encoded uses
}
@end

@class FakeCommandBuffer;

// Runs a command buffer as late as Metal's rules allow: when the caller waits for it or for a later
// one of its queue, or when more than 64 are uncompleted.
@interface FakeCommandQueue : NSObject <MTLCommandQueue> {
 @public
  std::mutex* _mutex;
  std::deque<FakeCommandBuffer*>* _committed;  // retained
}
- (void)enqueue:(FakeCommandBuffer*)buffer;
// Runs all command buffers up to `last` inclusive; nil: all.
- (void)runUntil:(FakeCommandBuffer*)last;
@end

@interface FakeCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  FakeCommandQueue* _queue;
  std::vector<std::function<void()>>* _work;
  std::atomic<int>* _status;
  NSError* _error;
}
- (instancetype)initWithQueue:(FakeCommandQueue*)queue;
// Adds work to a command buffer that is not committed.
- (void)addWork:(std::function<void()>)work using:(std::vector<FakeBuffer*>)buffers;
- (void)run;
@end

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_METAL_H_
