// The stand-in's own classes behind Metal's protocols.
#ifndef TF_LSTM_OPS_TESTS_METAL_STAND_IN_METAL_H_
#define TF_LSTM_OPS_TESTS_METAL_STAND_IN_METAL_H_

#import <Metal/Metal.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "stand_in.h"

// Retains an object for as long as a copy of what is returned exists.
std::shared_ptr<void> Kept(id object);

@interface StandInBuffer : NSObject <MTLBuffer> {
 @public
  NSUInteger _length;
  char* _memory;
  std::atomic<int>* _pending;  // how much encoded work uses it
}
@end

@class StandInCommandBuffer;

// Runs a command buffer as late as Metal's rules allow: when it, or a later
// one of its queue, is waited for, or when 64 others wait as it is committed.
@interface StandInCommandQueue : NSObject <MTLCommandQueue> {
 @public
  std::mutex* _mutex;
  std::deque<StandInCommandBuffer*>* _committed;  // retained
}
- (void)enqueue:(StandInCommandBuffer*)buffer;
// Runs all up to and with `last`; nil: all.
- (void)runUntil:(StandInCommandBuffer*)last;
@end

@interface StandInCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  StandInCommandQueue* _queue;
  std::vector<std::function<void()>>* _work;
  std::atomic<int>* _status;
  NSError* _error;
}
- (instancetype)initWithQueue:(StandInCommandQueue*)queue;
// Adds work to a command buffer that is not committed.
- (void)addWork:(std::function<void()>)work
             by:(const char*)encoder
          using:(std::vector<StandInBuffer*>)buffers;
- (void)run;
@end

#endif  // TF_LSTM_OPS_TESTS_METAL_STAND_IN_METAL_H_
