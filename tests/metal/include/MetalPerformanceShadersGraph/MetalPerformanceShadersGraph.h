// Declarations of the part of Apple's MPSGraph that the kernels use, for building without Apple's
// SDK.
#pragma once
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

typedef NS_ENUM(NSUInteger, MPSGraphRNNActivation) {
  MPSGraphRNNActivationNone = 0,
  MPSGraphRNNActivationRelu = 1,
  MPSGraphRNNActivationTanh = 2,
  MPSGraphRNNActivationSigmoid = 3,
  MPSGraphRNNActivationHardSigmoid = 4,
};

typedef NS_ENUM(uint64_t, MPSGraphOptimization) {
  MPSGraphOptimizationLevel0 = 0,
  MPSGraphOptimizationLevel1 = 1,
};

@class MPSGraphOperation;

@interface MPSGraphObject : NSObject
@end

@interface MPSGraphCompilationDescriptor : MPSGraphObject {
  MPSGraphOptimization _optimizationLevel;
}
@property(readwrite) MPSGraphOptimization optimizationLevel;
@end

@interface MPSGraphExecutionDescriptor : MPSGraphObject {
  MPSGraphCompilationDescriptor* _compilationDescriptor;
}
@property(readwrite, retain) MPSGraphCompilationDescriptor* compilationDescriptor;
@end

@interface MPSGraphTensor : MPSGraphObject <NSCopying> {
 @public
  void* _impl;
}
@property(readonly) MPSShape* shape;
@end

@interface MPSGraphTensorData : MPSGraphObject {
 @public
  void* _impl;
}
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer
                            shape:(MPSShape*)shape
                         dataType:(MPSDataType)dataType;
@end

@interface MPSGraphLSTMDescriptor : MPSGraphObject {
  BOOL _produceCell, _training, _forgetGateLast;
  MPSGraphRNNActivation _inputGateActivation, _forgetGateActivation, _cellGateActivation,
      _outputGateActivation, _activation;
}
@property(readwrite) BOOL produceCell;
@property(readwrite) BOOL training;
@property(readwrite) BOOL forgetGateLast;
@property(readwrite) MPSGraphRNNActivation inputGateActivation;
@property(readwrite) MPSGraphRNNActivation forgetGateActivation;
@property(readwrite) MPSGraphRNNActivation cellGateActivation;
@property(readwrite) MPSGraphRNNActivation outputGateActivation;
@property(readwrite) MPSGraphRNNActivation activation;
+ (instancetype)descriptor;
@end

typedef NSDictionary<MPSGraphTensor*, MPSGraphTensorData*> MPSGraphTensorDataDictionary;

@interface MPSGraph : MPSGraphObject {
 @public
  void* _impl;
}

// Running.
- (void)encodeToCommandBuffer:(MPSCommandBuffer*)commandBuffer
                        feeds:(MPSGraphTensorDataDictionary*)feeds
             targetOperations:(NSArray<MPSGraphOperation*>*)targetOperations
            resultsDictionary:(MPSGraphTensorDataDictionary*)resultsDictionary
          executionDescriptor:(MPSGraphExecutionDescriptor*)executionDescriptor;

// Where values come from.
- (MPSGraphTensor*)placeholderWithShape:(MPSShape*)shape
                               dataType:(MPSDataType)dataType
                                   name:(NSString*)name;
- (MPSGraphTensor*)constantWithScalar:(double)scalar dataType:(MPSDataType)dataType;
- (MPSGraphTensor*)constantWithScalar:(double)scalar
                                shape:(MPSShape*)shape
                             dataType:(MPSDataType)dataType;

// Element by element.
- (MPSGraphTensor*)identityWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)castTensor:(MPSGraphTensor*)tensor toType:(MPSDataType)type name:(NSString*)name;
- (MPSGraphTensor*)sigmoidWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)tanhWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
- (MPSGraphTensor*)additionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(NSString*)name;
- (MPSGraphTensor*)subtractionWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                           name:(NSString*)name;
- (MPSGraphTensor*)multiplicationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                   secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                              name:(NSString*)name;
- (MPSGraphTensor*)lessThanWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                             secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                        name:(NSString*)name;
- (MPSGraphTensor*)selectWithPredicateTensor:(MPSGraphTensor*)predicateTensor
                         truePredicateTensor:(MPSGraphTensor*)truePredicateTensor
                        falsePredicateTensor:(MPSGraphTensor*)falseSelectTensor
                                        name:(NSString*)name;

// Sums.
- (MPSGraphTensor*)matrixMultiplicationWithPrimaryTensor:(MPSGraphTensor*)primaryTensor
                                         secondaryTensor:(MPSGraphTensor*)secondaryTensor
                                                    name:(NSString*)name;
- (MPSGraphTensor*)reductionSumWithTensor:(MPSGraphTensor*)tensor
                                     axis:(NSInteger)axis
                                     name:(NSString*)name;

// Moving values.
- (MPSGraphTensor*)reshapeTensor:(MPSGraphTensor*)tensor
                       withShape:(MPSShape*)shape
                            name:(NSString*)name;
- (MPSGraphTensor*)transposeTensor:(MPSGraphTensor*)tensor
                         dimension:(NSUInteger)dimensionIndex
                     withDimension:(NSUInteger)dimensionIndex2
                              name:(NSString*)name;
- (MPSGraphTensor*)sliceTensor:(MPSGraphTensor*)tensor
                     dimension:(NSUInteger)dimensionIndex
                         start:(NSInteger)start
                        length:(NSInteger)length
                          name:(NSString*)name;
- (MPSGraphTensor*)concatTensors:(NSArray<MPSGraphTensor*>*)tensors
                       dimension:(NSInteger)dimensionIndex
                            name:(NSString*)name;
- (MPSGraphTensor*)broadcastTensor:(MPSGraphTensor*)tensor
                           toShape:(MPSShape*)shape
                              name:(NSString*)name;
- (MPSGraphTensor*)reverseTensor:(MPSGraphTensor*)tensor
                            axes:(NSArray<NSNumber*>*)axes
                            name:(NSString*)name;
- (MPSGraphTensor*)gatherWithUpdatesTensor:(MPSGraphTensor*)updatesTensor
                             indicesTensor:(MPSGraphTensor*)indicesTensor
                                      axis:(NSUInteger)axis
                           batchDimensions:(NSUInteger)batchDimensions
                                      name:(NSString*)name;

// LSTM.
- (NSArray<MPSGraphTensor*>*)LSTMWithSourceTensor:(MPSGraphTensor*)source
                                  recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                      inputWeight:(MPSGraphTensor*)inputWeight
                                             bias:(MPSGraphTensor*)bias
                                        initState:(MPSGraphTensor*)initState
                                         initCell:(MPSGraphTensor*)initCell
                                             mask:(MPSGraphTensor*)mask
                                         peephole:(MPSGraphTensor*)peephole
                                       descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                             name:(NSString*)name;
- (NSArray<MPSGraphTensor*>*)LSTMGradientsWithSourceTensor:(MPSGraphTensor*)source
                                           recurrentWeight:(MPSGraphTensor*)recurrentWeight
                                            sourceGradient:(MPSGraphTensor*)sourceGradient
                                                    zState:(MPSGraphTensor*)zState
                                             cellOutputFwd:(MPSGraphTensor*)cellOutputFwd
                                             stateGradient:(MPSGraphTensor*)stateGradient
                                              cellGradient:(MPSGraphTensor*)cellGradient
                                               inputWeight:(MPSGraphTensor*)inputWeight
                                                      bias:(MPSGraphTensor*)bias
                                                 initState:(MPSGraphTensor*)initState
                                                  initCell:(MPSGraphTensor*)initCell
                                                      mask:(MPSGraphTensor*)mask
                                                  peephole:(MPSGraphTensor*)peephole
                                                descriptor:(MPSGraphLSTMDescriptor*)descriptor
                                                      name:(NSString*)name;
@end
