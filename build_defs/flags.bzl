"""What is compiled, and how: the one place, for Bazel and for setup.py alike.

Plain assignments only, so that this file is Starlark and Python at once:
native.py executes it, native.bzl loads it.
"""

# Sources of every library of kernels.
GPU_SHARED_SOURCES = [
    "cc/core/*.cc",
    "cc/dialects/*/conversion.cc",
    "cc/dialects/*/dropout_mask.cc",
    "cc/dialects/*/ops.cc",
    "cc/dialects/*/problem.cc",
    "cc/tf/kernel.cc",
]

CPU_SOURCES = ["cc/backends/cpu/**/*.cc"]

LIBRARY = "tf_lstm_ops.so"
SOURCES = CPU_SOURCES + [
    "cc/dialects/*/*_cpu.cc",
    "cc/tf/device_plugin.cc",
    "cc/tf/op.cc",
] + GPU_SHARED_SOURCES

# Each of these is compiled once per instruction set, into a namespace that the
# macro TF_LSTM_OPS_SIMD names.
SIMD_SOURCES = ["cc/backends/cpu/simd/*.cc"]

# In ascending order. A linker keeps the first definition of an inline function that
# several objects contain. With this order, after all other objects, the kept
# definition never needs a better processor than its callers do.
SIMD_X86_64 = {
    "x86_64_v2": ["-march=x86-64-v2"],
    "x86_64_v3": ["-march=x86-64-v3"],
    "x86_64_v4": ["-march=x86-64-v4"],
    "x86_64_v4_bf16": ["-march=x86-64-v4", "-mavx512bf16", "-DTF_LSTM_OPS_DOTS_BFLOAT16"],
    "x86_64_v4_amx": [
        "-march=x86-64-v4",
        "-mamx-tile",
        "-mamx-bf16",
        "-DTF_LSTM_OPS_DOTS_BFLOAT16",
        "-DTF_LSTM_OPS_TILES",
    ],
}
SIMD_OTHER = {"baseline": []}
SIMD_ARM64_TOO = {"armv8_bf16": ["-march=armv8.2-a+bf16", "-DTF_LSTM_OPS_DOTS_BFLOAT16"]}
SIMD_DEFINE = "-DTF_LSTM_OPS_SIMD="

# A loop of a few instructions that crosses a cache line can take a fifth longer.
# So its speed must not depend on the code before it.
SIMD_COPTS = ["-falign-functions=64", "-falign-loops=32"]

# Without contraction, a * b + c is rounded twice on every instruction set unless
# the code calls a fused multiply-add. Functions have sections of their own, so that the
# linker can leave out those that a library does not use.
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
    "-Icc",
    "-ffunction-sections",
    "-fdata-sections",
]

# Where warnings are errors: in this project's own runs, not with a user's compiler.
STRICT_VARIABLE = "TF_LSTM_OPS_STRICT_BUILD"
STRICT_COPTS = ["-Werror"]

# Builds that check the library, or count its lines: the variable holds sanitizers
# as the compiler's -fsanitize takes them, or "coverage". The sanitizers stop at the
# first undefined behaviour. Without vptr: TensorFlow's classes have no type
# information to compare with. Assertions are checked.
INSTRUMENT_VARIABLE = "TF_LSTM_OPS_INSTRUMENT"
SANITIZE_COPTS = ["-O1", "-g1", "-fno-omit-frame-pointer", "-UNDEBUG"]
SANITIZE_UNDEFINED_OPTS = ["-fno-sanitize-recover=undefined", "-fno-sanitize=vptr"]
COVERAGE_OPTS = ["-O1", "--coverage", "-fprofile-update=atomic"]

# The oldest macOS that the libraries run on.
MACOS_OPTS = ["-mmacosx-version-min=13.0"]

# All other sources must run on every processor of the architecture, whatever the
# compiler's default is.
COPTS_X86_64 = ["-march=x86-64"]

# The library needs TensorFlow's library at run time, where it finds the C API. It
# is linked with an empty stub of that name, so the build needs no TensorFlow.
STUB = "libtensorflow_framework.so.2"
STUB_SOURCE = "build_defs/stub.cc"
STUB_LINKOPTS = ["-shared", "-fPIC", "-nostdlib", "-Wl,-soname," + STUB]

# nodelete: the threads of the team run the library's code until the process ends, so the
# library stays in memory after dlclose.
EXPORTS_LINUX = "build_defs/exports.lds"
LINKOPTS_LINUX = [
    "-pthread",
    "-ldl",
    "-Wl,-z,nodelete",
    "-Wl,--version-script=" + EXPORTS_LINUX,
    "-Wl,--no-as-needed",
]
LINKOPTS_MACOS = [
    "-pthread",
    "-Wl,-undefined,dynamic_lookup",
    "-Wl,-exported_symbol,_tf_lstm_ops_*",
]

# The start of a library's own name on macOS, which would else be a path of the build.
MACOS_INSTALL_NAME = "-Wl,-install_name,@rpath/"

# The library of sessions, which needs nothing of TensorFlow. It has the same name on
# each system. It exports the functions of include/tf_lstm_ops.h, and contains the
# parts of the C++ runtime that it uses.
INFERENCE_LIBRARY = "libtf_lstm_ops_inference.so"
# The CPU backend, what it needs of core, and the ops of layers.
INFERENCE_SOURCES = CPU_SOURCES + [
    "cc/core/keras_layer.cc",
    "cc/core/packed_sequence.cc",
    "cc/core/shape.cc",
    "cc/core/signature.cc",
    "cc/dialects/keras/ops.cc",
]
SESSION_SOURCES = ["cc/session/*.cc", "cc/session/layers/*.cc", "cc/training/*.cc"]
SESSION_COPTS = ["-Iinclude"]
INFERENCE_EXPORTS_LINUX = "build_defs/inference_exports.lds"
INFERENCE_LINKOPTS_LINUX = [
    "-pthread",
    "-static-libstdc++",
    "-static-libgcc",
    "-s",
    "-Wl,-z,nodelete",
    "-Wl,--gc-sections",
    "-Wl,--version-script=" + INFERENCE_EXPORTS_LINUX,
    "-Wl,-soname,libtf_lstm_ops_inference.so",
]
INFERENCE_LINKOPTS_MACOS = [
    "-pthread",
    "-Wl,-undefined,dynamic_lookup",
    "-Wl,-exported_symbol,_tf_lstm_ops_api_version",
    "-Wl,-exported_symbol,_tf_lstm_ops_code_text",
    "-Wl,-exported_symbol,_tf_lstm_ops_layer_*",
    "-Wl,-exported_symbol,_tf_lstm_ops_selected_instruction_set",
    "-Wl,-exported_symbol,_tf_lstm_ops_session_*",
    "-Wl,-exported_symbol,_tf_lstm_ops_stream_*",
]

# With the variable = 1 an installation has this library only, for programs without
# TensorFlow. The define, and the lack of the sources, leave out what the linker would remove
# from it.
SESSIONS_ONLY_VARIABLE = "TF_LSTM_OPS_SESSIONS_ONLY"
SESSIONS_ONLY_COPTS = ["-DTF_LSTM_OPS_SESSIONS_ONLY"]
SESSIONS_ONLY_LEFT_OUT = [
    "cc/backends/cpu/layer.cc",
    "cc/backends/cpu/training_engine.cc",
    "cc/core/shape.cc",
    "cc/core/signature.cc",
    "cc/dialects/keras/ops.cc",
    "cc/training/arrays.cc",
    "cc/training/layer.cc",
    "cc/training/library.cc",
]

# The static library of sessions, on Linux, without layers. Its one object contains those of the shared
# library and the parts of the C++ runtime that they use. All symbols but the functions of
# include/tf_lstm_ops.h are local to it: a linker that took single objects from an archive
# could keep an inline function that was compiled for a newer processor.
ARCHIVE_LIBRARY = "libtf_lstm_ops_inference.a"
ARCHIVE_FUNCTIONS = [
    "tf_lstm_ops_api_version",
    "tf_lstm_ops_code_text",
    "tf_lstm_ops_selected_instruction_set",
    "tf_lstm_ops_session_close",
    "tf_lstm_ops_session_get_data",
    "tf_lstm_ops_session_get_info",
    "tf_lstm_ops_session_get_input",
    "tf_lstm_ops_session_get_output",
    "tf_lstm_ops_session_get_state",
    "tf_lstm_ops_session_infer_shapes",
    "tf_lstm_ops_session_open",
    "tf_lstm_ops_session_open_data",
    "tf_lstm_ops_session_run",
    "tf_lstm_ops_session_run_arrays",
    "tf_lstm_ops_session_run_lengths",
    "tf_lstm_ops_stream_close",
    "tf_lstm_ops_stream_get_state",
    "tf_lstm_ops_stream_open",
    "tf_lstm_ops_stream_reset",
    "tf_lstm_ops_stream_run",
    "tf_lstm_ops_stream_run_arrays",
    "tf_lstm_ops_stream_set_state",
]
ARCHIVE_LINKOPTS = [
    "-r",
    "-nostdlib",
    "-Wl,--gc-sections",
    "-Wl,--force-group-allocation",
]
ARCHIVE_ROOT = "-Wl,-u,"  # before the name of a function that must stay
ARCHIVE_RUNTIME = ["-l:libstdc++.a"]

# objcopy makes weak symbols local, but not those that GCC marks as unique in a process.
ARCHIVE_WEAK_OPTS = ["--wildcard", "--weaken-symbol=_Z*"]
ARCHIVE_LOCAL_OPTS = ["--strip-unneeded"]
ARCHIVE_GLOBAL = "--keep-global-symbol="
ARCHIVE_AR_OPTS = ["rcsD"]

# In place of a stub, the library for Windows has functions that find TensorFlow's.
WINDOWS_SOURCES = ["cc/tf/windows/*.cc"]

# The library of CUDA kernels, on Linux only. The build needs nothing of CUDA. The
# library contains the device code as text; paths begin at the root.
CUDA_LIBRARY = "tf_lstm_ops_cuda.so"
CUDA_SOURCES = [
    "cc/backends/cuda/**/*.cc",
    "cc/dialects/*/*_cuda.cc",
    "cc/tf/cuda/*.cc",
] + GPU_SHARED_SOURCES

# Device code that the library contains as text.
CUDA_TEXTS = [
    "cc/backends/cuda/kernels/*.cu",
    "cc/backends/cuda/kernels/nvrtc/*",
]

# Sources that the package contains as text. They depend on TensorFlow's version
# and are compiled on the machine with the GPU.
CUDA_STREAM_SOURCES = ["cc/tf/cuda/stream_library/*"]

# The library of Metal kernels, on macOS only: Objective-C++ with manual retain and
# release.
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
