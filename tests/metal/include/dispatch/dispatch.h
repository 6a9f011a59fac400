// Declarations of the part of libdispatch that the kernels use, for building without Apple's SDK.
#pragma once

typedef struct dispatch_queue_s* dispatch_queue_t;
typedef void (^dispatch_block_t)(void);

extern "C" void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block);
