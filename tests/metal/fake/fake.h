// The interface of the fake frameworks for the fake plugins and the tests, besides Apple's own
// interfaces.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_FAKE_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_FAKE_H_

#include <dispatch/dispatch.h>

extern "C" {

// Returns a new serial queue, which cannot be destroyed.
dispatch_queue_t fake_queue_create(void);
// Returns whether the calling thread runs a block of the queue.
int fake_queue_is_current(dispatch_queue_t queue);

// Runs all work that was committed to a command queue (id<MTLCommandQueue>).
void fake_finish(void* command_queue);
// Prints the message and ends the process. For places where an exception would be lost.
[[noreturn]] void fake_abort(const char* message);
// Makes the next command buffer with work compute nothing and end in an error.
void fake_fail_next_command_buffer(void);

// Returns a count of live objects ("graphs", "tensor data", "buffers", "buffer bytes", "command
// buffers").
long fake_count(const char* name);

}  // extern "C"

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_FAKE_H_
