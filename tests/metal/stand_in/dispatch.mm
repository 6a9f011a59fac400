// libdispatch: a serial queue is a mutex.
#import <Foundation/Foundation.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "misuse.h"
#include "stand_in.h"

struct dispatch_queue_s {
  std::mutex mutex;
  std::atomic<std::thread::id> runs_on{};
};

extern "C" {

void stand_in_abort(const char* message) {
  std::fprintf(stderr, "stand-in: %s\n", message);
  std::abort();
}

dispatch_queue_t stand_in_queue_create(void) { return new dispatch_queue_s; }

int stand_in_queue_is_current(dispatch_queue_t queue) {
  return queue->runs_on.load() == std::this_thread::get_id();
}

void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block) {
  if (stand_in_queue_is_current(queue)) {
    stand_in_abort("dispatch_sync on the queue that runs: a deadlock");
  }
  const std::lock_guard<std::mutex> lock(queue->mutex);
  queue->runs_on = std::this_thread::get_id();
  @try {
    block();
  } @catch (NSException* exception) {
    stand_in_abort([[@"an exception leaves a block of dispatch_sync: "
        stringByAppendingString:[exception reason]] UTF8String]);
  }
  queue->runs_on = std::thread::id();
}

}  // extern "C"

void stand_in::Raise(const std::string& reason) {
  // Seen also where nobody catches it.
  std::fprintf(stderr, "stand-in: %s\n", reason.c_str());
  [NSException raise:@"StandInMisuse" format:@"%s", reason.c_str()];
  std::abort();
}
