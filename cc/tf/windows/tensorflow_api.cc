// TensorFlow's C API in a library for Windows.
//
// Such a library names the file of each function that it takes from elsewhere,
// and TensorFlow's files differ from version to version. So the functions are
// defined here. Each jumps to the function of this name that is found in the
// process when the library is loaded. Not run on Windows.
#include <windows.h>

// All functions that the library calls; a test compares.
// clang-format off
#define TF_LSTM_OPS_C_API(F) \
  F(TF_AllocateOutput) \
  F(TF_AllocateTemp) \
  F(TF_DeleteBuffer) \
  F(TF_DeleteDimensionHandle) \
  F(TF_DeleteShapeHandle) \
  F(TF_DeleteStatus) \
  F(TF_DeleteTensor) \
  F(TF_Dim) \
  F(TF_DimensionHandleValue) \
  F(TF_DimensionHandleValueKnown) \
  F(TF_GetCode) \
  F(TF_GetInput) \
  F(TF_GetSerializedConfigProto) \
  F(TF_GetStepId) \
  F(TF_GetStream) \
  F(TF_KernelBuilder_HostMemory) \
  F(TF_KernelBuilder_Priority) \
  F(TF_KernelBuilder_TypeConstraint) \
  F(TF_Message) \
  F(TF_NewBuffer) \
  F(TF_NewDimensionHandle) \
  F(TF_NewKernelBuilder) \
  F(TF_NewOpDefinitionBuilder) \
  F(TF_NewShapeHandle) \
  F(TF_NewStatus) \
  F(TF_NumDims) \
  F(TF_OpDefinitionBuilderAddAttr) \
  F(TF_OpDefinitionBuilderAddInput) \
  F(TF_OpDefinitionBuilderAddOutput) \
  F(TF_OpDefinitionBuilderSetIsStateful) \
  F(TF_OpDefinitionBuilderSetShapeInferenceFunction) \
  F(TF_OpKernelConstruction_GetAttrBool) \
  F(TF_OpKernelConstruction_GetAttrFloat) \
  F(TF_OpKernelConstruction_GetAttrInt64) \
  F(TF_OpKernelConstruction_GetAttrString) \
  F(TF_OpKernelConstruction_GetAttrType) \
  F(TF_OpKernelContext_Failure) \
  F(TF_RegisterKernelBuilder) \
  F(TF_RegisterOpDefinition) \
  F(TF_SetStatus) \
  F(TF_ShapeInferenceContextConcatenateShapes) \
  F(TF_ShapeInferenceContextDim) \
  F(TF_ShapeInferenceContextGetInput) \
  F(TF_ShapeInferenceContextRank) \
  F(TF_ShapeInferenceContextRankKnown) \
  F(TF_ShapeInferenceContextScalar) \
  F(TF_ShapeInferenceContextSetOutput) \
  F(TF_ShapeInferenceContextSetUnknownShape) \
  F(TF_ShapeInferenceContextSubshape) \
  F(TF_ShapeInferenceContextVectorFromSize) \
  F(TF_ShapeInferenceContextWithRank) \
  F(TF_TensorData) \
  F(TF_TensorByteSize) \
  F(TF_TensorElementCount)
// clang-format on

namespace {

// Where TensorFlow 2.20 and 2.21 have the functions, and where 2.18 has them.
constexpr const char* kFiles[] = {"_pywrap_tensorflow_common.dll",
                                  "_pywrap_tensorflow_internal.pyd"};

// Stands for a function that was not found, until the library is unloaded.
void* ReturnNull() { return nullptr; }

struct Function {
  const char* name;
  void** address;
};

}  // namespace

#define TF_LSTM_OPS_DEFINE(name)         \
  extern "C" {                           \
  void* tf_lstm_ops_at_##name = nullptr; \
  }                                      \
  asm(".globl " #name "\n" #name         \
      ":\n"                              \
      "  jmpq *tf_lstm_ops_at_" #name "(%rip)\n");
TF_LSTM_OPS_C_API(TF_LSTM_OPS_DEFINE)

namespace {

#define TF_LSTM_OPS_ENTRY(name) {#name, &tf_lstm_ops_at_##name},
constexpr Function kFunctions[] = {TF_LSTM_OPS_C_API(TF_LSTM_OPS_ENTRY)};

bool g_has_all = true;

void* Find(const char* name) {
  for (const char* file : kFiles) {
    const HMODULE library = GetModuleHandleA(file);
    if (library == nullptr) continue;
    if (const auto found = GetProcAddress(library, name)) {
      return reinterpret_cast<void*>(found);
    }
  }
  return nullptr;
}

// Before all other constructors: those register ops and kernels.
constexpr int kFirst = 101;

__attribute__((constructor(kFirst))) void FindFunctions() {
  for (const Function& function : kFunctions) {
    *function.address = Find(function.name);
    if (*function.address != nullptr) continue;
    *function.address = reinterpret_cast<void*>(&ReturnNull);
    g_has_all = false;
  }
}

}  // namespace

// The library does not load where a function is missing.
extern "C" BOOL WINAPI DllMain(HINSTANCE, DWORD, LPVOID) { return g_has_all; }
