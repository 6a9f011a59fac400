// A kernel whose construction throws: its calls fail instead of the process.
// The stubs below are the functions of TensorFlow that such a call is linked
// with.
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "harness.h"
#include "tf/kernel.h"

struct TSL_Status {
  TF_Code code = TF_OK;
  std::string message;
};

static TF_Status g_failure;

extern "C" {
TF_Status* TF_NewStatus() { return new TF_Status; }
void TF_DeleteStatus(TF_Status* status) { delete status; }
void TF_SetStatus(TF_Status* status, TF_Code code, const char* message) {
  *status = {code, message};
}
TF_Code TF_GetCode(const TF_Status* status) { return status->code; }
const char* TF_Message(const TF_Status* status) {
  return status->message.c_str();
}
// Of the virtual functions of KernelConstruction, which no test calls.
#define STUB(Type, ...)                       \
  void TF_OpKernelConstruction_GetAttr##Type( \
      TF_OpKernelConstruction*, const char*, __VA_ARGS__, TF_Status*) {}
STUB(Float, float*)
STUB(Bool, TF_Bool*)
STUB(Int64, int64_t*)
STUB(Type, TF_DataType*)
STUB(String, char*, size_t)
#undef STUB
void TF_OpKernelContext_Failure(TF_OpKernelContext*, TF_Status* status) {
  g_failure = *status;
}
}

namespace tf_lstm_ops::tf {
namespace {

// Throws in Init.
template <class Exception>
class Throws : public Kernel {
 public:
  Status Init(const KernelConstruction&) override { throw Exception("test"); }
  Status Compute(const KernelContext&) override { return Status(); }
};
struct NoMemory : std::bad_alloc {
  explicit NoMemory(const char*) {}
};

// Makes a kernel, calls it and returns the call's status.
TF_Status CallOf(MakeKernel make) {
  void* kernel = CreateKernel(nullptr, make);
  g_failure = {};
  ComputeKernel(kernel, nullptr);
  DestroyKernel(kernel);
  return g_failure;
}

TEST(NoMemoryForAKernel) {
  const TF_Status status =
      CallOf([]() -> std::unique_ptr<Kernel> { throw std::bad_alloc(); });
  CHECK_EQ(status.code, static_cast<TF_Code>(Code::kResourceExhausted));
  CHECK_EQ(status.message, "tf_lstm_ops: out of memory");
}

TEST(NoMemoryInInit) {
  const TF_Status status = CallOf([]() -> std::unique_ptr<Kernel> {
    return std::make_unique<Throws<NoMemory>>();
  });
  CHECK_EQ(status.code, static_cast<TF_Code>(Code::kResourceExhausted));
}

TEST(AnotherExceptionInInit) {
  const TF_Status status = CallOf([]() -> std::unique_ptr<Kernel> {
    return std::make_unique<Throws<std::runtime_error>>();
  });
  CHECK_EQ(status.code, static_cast<TF_Code>(Code::kInternal));
  CHECK_EQ(status.message, "tf_lstm_ops: test");
}

}  // namespace
}  // namespace tf_lstm_ops::tf

int main(int argc, char** argv) { return RunTest(argc, argv); }
