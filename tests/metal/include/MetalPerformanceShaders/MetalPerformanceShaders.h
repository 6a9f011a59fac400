// Declarations of the part of Apple's Metal Performance Shaders that the kernels use, for building
// without Apple's SDK.
#pragma once
#import <Metal/Metal.h>

typedef NS_ENUM(uint32_t, MPSDataType) {
  MPSDataTypeFloat32 = 0x10000020,
  MPSDataTypeFloat16 = 0x10000010,
  MPSDataTypeAlternateEncodingBit = 0x80000000,
  MPSDataTypeInt32 = 0x20000020,
  MPSDataTypeBool = 0x80000008,
};

typedef NSArray<NSNumber*> MPSShape;

@interface MPSCommandBuffer : NSObject <MTLCommandBuffer> {
  id<MTLCommandBuffer> _root;
}
@property(readonly) id<MTLCommandBuffer> rootCommandBuffer;
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)commandQueue;
- (void)commitAndContinue;
@end
