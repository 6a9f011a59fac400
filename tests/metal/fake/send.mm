// Messages from Python.
#import <Foundation/Foundation.h>

#include <string>

#include "fake.h"

extern "C" {

void* fake_class(const char* name) {
  return (void*)NSClassFromString([NSString stringWithUTF8String:name]);
}

void* fake_new_pool(void) { return [[NSAutoreleasePool alloc] init]; }

void fake_drain(void* pool) { [(NSAutoreleasePool*)pool drain]; }

const char* fake_send(void* receiver, const char* selector, void* const* arguments, int count,
                      void* result) {
  thread_local std::string raised;
  @try {
    const id object = (id)receiver;
    const SEL message = NSSelectorFromString([NSString stringWithUTF8String:selector]);
    NSMethodSignature* signature = [object methodSignatureForSelector:message];
    if (signature == nil) {
      [NSException raise:@"NoSuchMethod" format:@"no method %s", selector];
    }
    NSInvocation* call = [NSInvocation invocationWithMethodSignature:signature];
    [call setTarget:object];
    [call setSelector:message];
    for (int k = 0; k < count; ++k) {
      [call setArgument:arguments[k] atIndex:k + 2];
    }
    [call invoke];
    if ([signature methodReturnLength] != 0) [call getReturnValue:result];
    return nullptr;
  } @catch (NSException* exception) {
    raised = [[exception reason] UTF8String];
    return raised.c_str();
  }
}

}  // extern "C"
