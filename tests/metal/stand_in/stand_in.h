// What the stand-in has beyond Apple's interfaces: for the plugins and tests.
#ifndef TF_LSTM_OPS_TESTS_METAL_STAND_IN_STAND_IN_H_
#define TF_LSTM_OPS_TESTS_METAL_STAND_IN_STAND_IN_H_

#include <dispatch/dispatch.h>

extern "C" {

// A serial queue; there is no way to destroy it.
dispatch_queue_t stand_in_queue_create(void);
// Whether the calling thread runs a block of the queue.
int stand_in_queue_is_current(dispatch_queue_t queue);

// Runs all that was committed to a command queue, an id<MTLCommandQueue>.
void stand_in_finish(void* command_queue);
// Ends the process with the message, where an exception would be lost.
[[noreturn]] void stand_in_abort(const char* message);
// The next command buffer that runs ends in an error and computes nothing.
void stand_in_fail_next_command_buffer(void);

// How many objects exist: "graphs", "tensor data", "buffers", "buffer bytes",
// "command buffers"; and how often graphs were encoded: "encodings".
long stand_in_count(const char* name);

// Sends a message as Python can: each argument by its address; null, or the
// reason of the exception that it raised, valid until the next call.
const char* stand_in_send(void* receiver, const char* selector,
                          void* const* arguments, int count, void* result);
void* stand_in_class(const char* name);
void* stand_in_new_pool(void);  // an NSAutoreleasePool
void stand_in_drain(void* pool);
// forLoopWithNumberOfIterations:… with a function as body, which returns an
// NSArray.
const char* stand_in_loop(void* graph, void* iterations, void* arguments,
                          void* (*body)(void* index, void* arguments),
                          void** results);

}  // extern "C"

#endif  // TF_LSTM_OPS_TESTS_METAL_STAND_IN_STAND_IN_H_
