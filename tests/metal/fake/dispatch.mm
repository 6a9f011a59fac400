// libdispatch. A serial queue is a mutex.
#import <Foundation/Foundation.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "fake.h"
#include "misuse.h"

struct dispatch_queue_s {
  std::mutex mutex;
  std::atomic<std::thread::id> runs_on{};
};

extern "C" {

void fake_abort(const char* message) {
  std::fprintf(stderr, "fake: %s\n", message);
  std::abort();
}

dispatch_queue_t fake_queue_create(void) { return new dispatch_queue_s; }

int fake_queue_is_current(dispatch_queue_t queue) {
  return queue->runs_on.load() == std::this_thread::get_id();
}

void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block) {
  if (fake_queue_is_current(queue)) {
    fake_abort("dispatch_sync on the queue that runs: a deadlock");
  }
  const std::lock_guard<std::mutex> lock(queue->mutex);
  queue->runs_on = std::this_thread::get_id();
  @try {
    block();
  } @catch (NSException* exception) {
    fake_abort([[@"an exception leaves a block of dispatch_sync: "
        stringByAppendingString:[exception reason]] UTF8String]);
  }
  queue->runs_on = std::thread::id();
}

}  // extern "C"

void fake::Raise(const std::string& reason) {
  // Printed too, for an exception that nothing catches.
  std::fprintf(stderr, "fake: %s\n", reason.c_str());
  [NSException raise:@"FakeMisuse" format:@"%s", reason.c_str()];
  std::abort();
}
