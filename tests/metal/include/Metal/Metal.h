// Declarations of the part of Apple's Metal that the kernels use, for building without Apple's SDK.
// test_selectors.py compares them with published lists.
#pragma once
#import <Foundation/Foundation.h>

typedef NS_ENUM(NSUInteger, MTLResourceOptions) {
  MTLResourceStorageModeShared = 0,
  MTLResourceStorageModePrivate = 32,
};

typedef NS_ENUM(NSUInteger, MTLCommandBufferStatus) {
  MTLCommandBufferStatusNotEnqueued = 0,
  MTLCommandBufferStatusCommitted = 2,
  MTLCommandBufferStatusCompleted = 4,
  MTLCommandBufferStatusError = 5,
};

@protocol MTLBuffer;
@protocol MTLCommandQueue;

@protocol MTLDevice <NSObject>
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLBuffer>)newBufferWithBytes:(const void*)pointer
                             length:(NSUInteger)length
                            options:(MTLResourceOptions)options;
@end

@protocol MTLBuffer <NSObject>
@property(readonly) NSUInteger length;
- (void*)contents;
@end

@protocol MTLCommandBuffer <NSObject>
@property(readonly) id<MTLDevice> device;
@property(readonly) id<MTLCommandQueue> commandQueue;
@property(readonly) MTLCommandBufferStatus status;
@property(readonly) NSError* error;
- (void)commit;
- (void)waitUntilCompleted;
@end

@protocol MTLCommandQueue <NSObject>
- (id<MTLCommandBuffer>)commandBuffer;
@end

extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice(void);
