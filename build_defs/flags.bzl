"""What is compiled, and how: the one place, for Bazel and for setup.py alike.

Plain assignments only, so that this file is Starlark and Python at once:
native.py executes it, native.bzl loads it.
"""

# What every library of kernels has.
GPU_SHARED_SOURCES = [
    "cc/core/*.cc",
    "cc/dialects/*/conversion.cc",
    "cc/dialects/*/dropout_mask.cc",
    "cc/dialects/*/ops.cc",
    "cc/dialects/*/problem.cc",
    "cc/tf/kernel.cc",
]

SOURCES = [
    "cc/backends/cpu/**/*.cc",
    "cc/dialects/*.cc",
    "cc/dialects/*/*_cpu.cc",
    "cc/tf/op.cc",
] + GPU_SHARED_SOURCES

# Each of these is compiled once per instruction set, into a namespace that the
# macro TF_LSTM_OPS_SIMD names.
SIMD_SOURCES = ["cc/backends/cpu/simd/*.cc"]

# In ascending order. Linkers keep the first definition of an inline function that
# several objects hold: with this order after the other objects, never one that
# needs more of the processor than its callers may.
SIMD_X86_64 = {
    "x86_64_v2": ["-march=x86-64-v2"],
    "x86_64_v3": ["-march=x86-64-v3"],
    "x86_64_v4": ["-march=x86-64-v4"],
    "x86_64_v4_bf16": ["-march=x86-64-v4", "-mavx512bf16", "-DTF_LSTM_OPS_DOTS_BFLOAT16"],
}
SIMD_OTHER = {"baseline": []}
SIMD_ARM64_TOO = {"armv8_bf16": ["-march=armv8.2-a+bf16", "-DTF_LSTM_OPS_DOTS_BFLOAT16"]}
SIMD_DEFINE = "-DTF_LSTM_OPS_SIMD="

# Without contraction a * b + c is rounded twice wherever it is compiled, unless
# the code asks for a fused multiply-add: the same bits on every instruction set.
COPTS = [
    "-std=c++17",
    "-O3",
    "-DNDEBUG",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Icc",
]

# All other sources: any processor of the kind must run them, whatever the
# compiler's own default.
COPTS_X86_64 = ["-march=x86-64"]

# The library names TensorFlow's as one that it needs, and so finds the C API in
# the process that loads it; what it is linked against is an empty stub of that
# name, hence no TensorFlow is needed to build it.
STUB = "libtensorflow_framework.so.2"
STUB_SOURCE = "build_defs/stub.cc"
STUB_LINKOPTS = ["-shared", "-fPIC", "-nostdlib", "-Wl,-soname," + STUB]

EXPORTS_LINUX = "build_defs/exports.lds"
LINKOPTS_LINUX = ["-pthread", "-Wl,--version-script=" + EXPORTS_LINUX, "-Wl,--no-as-needed"]
LINKOPTS_MACOS = [
    "-pthread",
    "-Wl,-undefined,dynamic_lookup",
    "-Wl,-exported_symbol,_tf_lstm_ops_*",
]

# The library of kernels for CUDA, on Linux only. Nothing of CUDA is needed to
# build it. The headers of device code are part of it as text, by their paths
# from the root.
CUDA_LIBRARY = "tf_lstm_ops_cuda.so"
CUDA_SOURCES = [
    "cc/backends/cuda/**/*.cc",
    "cc/dialects/*/*_cuda.cc",
    "cc/tf/cuda/*.cc",
] + GPU_SHARED_SOURCES
CUDA_LINKOPTS = ["-ldl"]

# Device code, which the library has as text.
CUDA_TEXTS = [
    "cc/backends/cuda/kernels/*.cu",
    "cc/backends/cuda/kernels/nvrtc/*",
]

# What a package has as text, to be compiled beside a GPU: it depends on the
# version of TensorFlow.
CUDA_STREAM_SOURCES = ["cc/tf/cuda/stream_library/*"]

# The library of kernels for Metal, on macOS only: Objective-C++ with manual
# retain and release.
METAL_LIBRARY = "tf_lstm_ops_metal.so"
METAL_SOURCES = [
    "cc/backends/metal/*.mm",
    "cc/dialects/*/*_metal.mm",
] + GPU_SHARED_SOURCES
METAL_COPTS = ["-fno-objc-arc", "-fblocks"]
METAL_LINKOPTS_MACOS = LINKOPTS_MACOS + [
    "-framework",
    "Foundation",
    "-framework",
    "Metal",
    "-framework",
    "MetalPerformanceShaders",
    "-framework",
    "MetalPerformanceShadersGraph",
]
