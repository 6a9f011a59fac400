"""The native library as Bazel targets, from the same lists and flags as setup.py's."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load(
    ":flags.bzl",
    "COPTS",
    "COPTS_X86_64",
    "CPU_SOURCES",
    "CUDA_LIBRARY",
    "CUDA_SOURCES",
    "CUDA_STREAM_SOURCES",
    "CUDA_TEXTS",
    "EXPORTS_LINUX",
    "GPU_SHARED_SOURCES",
    "INFERENCE_EXPORTS_LINUX",
    "INFERENCE_LIBRARY",
    "INFERENCE_LINKOPTS_LINUX",
    "INFERENCE_LINKOPTS_MACOS",
    "INFERENCE_SOURCES",
    "LIBRARY",
    "LINKOPTS_LINUX",
    "LINKOPTS_MACOS",
    "SESSION_COPTS",
    "SESSION_SOURCES",
    "SIMD_ARM64_TOO",
    "SIMD_COPTS",
    "SIMD_DEFINE",
    "SIMD_OTHER",
    "SIMD_SOURCES",
    "SIMD_X86_64",
    "SOURCES",
    "STUB",
    "STUB_LINKOPTS",
    "STUB_SOURCE",
)

_LINUX = "@platforms//os:linux"
_MACOS = "@platforms//os:osx"
_ARM64 = "@platforms//cpu:aarch64"
_X86_64 = "@platforms//cpu:x86_64"
_BASE_COPTS = COPTS + select({
    _X86_64: COPTS_X86_64,
    "//conditions:default": [],
})

def _file(path):
    """The label of a file in build_defs."""
    return "//build_defs:" + path[len("build_defs/"):]

def _simd_libraries(levels):
    """One library per instruction set: their labels, in the order of linking."""
    for level, flags in levels.items():
        cc_library(
            name = "simd_" + level,
            srcs = native.glob(SIMD_SOURCES),
            copts = COPTS + SIMD_COPTS + flags + [SIMD_DEFINE + level],
            linkstatic = True,
            # Built where the library needs it, and not by //... on other processors.
            tags = ["manual"],
            deps = [":headers"],
        )
    return [":simd_" + level for level in levels]

def native_libraries(folder):
    """The libraries of ops and of sessions in a folder, of all sources in cc/ but those for GPUs.

    Args:
      folder: where they lie, with a "/" at its end.

    Returns:
      their labels.
    """
    baseline = _simd_libraries(SIMD_OTHER)
    simd = select({
        _X86_64: _simd_libraries(SIMD_X86_64),
        _ARM64: baseline + _simd_libraries(SIMD_ARM64_TOO),
        "//conditions:default": baseline,
    })
    cc_library(
        name = "headers",
        hdrs = native.glob(["cc/**/*.h"]),
    )
    cc_library(
        name = "shared",
        srcs = native.glob(GPU_SHARED_SOURCES),
        copts = _BASE_COPTS,
        linkstatic = True,
        deps = [":headers"],
        # All objects, as setup.py links them.
        alwayslink = True,
    )
    cc_library(
        name = "cpu",
        srcs = native.glob(CPU_SOURCES, exclude = SIMD_SOURCES),
        copts = _BASE_COPTS,
        linkstatic = True,
        deps = [":headers"],
        alwayslink = True,
    )
    _session_library(folder, simd)
    cc_binary(
        name = STUB,
        srcs = [_file(STUB_SOURCE)],
        linkopts = STUB_LINKOPTS,
        linkshared = True,
    )
    cc_binary(
        name = folder + LIBRARY,
        srcs = native.glob(SOURCES, exclude = CPU_SOURCES + GPU_SHARED_SOURCES),
        additional_linker_inputs = [":" + STUB, _file(EXPORTS_LINUX)],
        copts = _BASE_COPTS,
        # The stub by its path and not as a dependency, which would have the library
        # load it when it runs.
        linkopts = select({
            _MACOS: LINKOPTS_MACOS,
            "//conditions:default": LINKOPTS_LINUX + ["$(location :%s)" % STUB],
        }),
        linkshared = True,
        visibility = ["//visibility:public"],
        deps = [":headers", ":cpu", ":shared"] + simd,
    )
    return [":" + folder + LIBRARY, ":" + folder + INFERENCE_LIBRARY]

def _session_library(folder, simd):
    """The library of sessions, with the libraries `simd` of the instruction sets."""
    cc_library(
        name = "session",
        srcs = native.glob(SESSION_SOURCES),
        hdrs = native.glob(["include/*.h"]),
        copts = _BASE_COPTS + SESSION_COPTS,
        linkstatic = True,
        deps = [":headers"],
        alwayslink = True,
    )
    cc_binary(
        name = folder + INFERENCE_LIBRARY,
        # The backend is in the target "cpu".
        srcs = native.glob(INFERENCE_SOURCES, exclude = CPU_SOURCES),
        additional_linker_inputs = [_file(INFERENCE_EXPORTS_LINUX)],
        copts = _BASE_COPTS,
        linkopts = select({
            _MACOS: INFERENCE_LINKOPTS_MACOS,
            "//conditions:default": INFERENCE_LINKOPTS_LINUX,
        }),
        linkshared = True,
        visibility = ["//visibility:public"],
        deps = [":session", ":cpu", ":headers"] + simd,
    )

def cuda_library(folder):
    """The library of kernels for CUDA in a folder, on Linux, and what it is called with there.

    Args:
      folder: where it lies, with a "/" at its end.

    Returns:
      the labels of all, as data of those that load it.
    """
    cc_library(
        name = "cuda_texts",
        textual_hdrs = native.glob(CUDA_TEXTS),
    )
    cc_binary(
        name = folder + CUDA_LIBRARY,
        srcs = native.glob(CUDA_SOURCES, exclude = GPU_SHARED_SOURCES),
        additional_linker_inputs = [":" + STUB, _file(EXPORTS_LINUX)],
        copts = _BASE_COPTS,
        linkopts = LINKOPTS_LINUX + ["$(location :%s)" % STUB],
        linkshared = True,
        target_compatible_with = [_LINUX],
        deps = [":cuda_texts", ":headers", ":shared"],
    )
    sources = native.glob(CUDA_STREAM_SOURCES)
    native.genrule(
        name = "cuda_stream_sources",
        srcs = sources,
        outs = [folder + source.split("/")[-1] for source in sources],
        cmd = "cp $(SRCS) $(RULEDIR)/" + folder,
    )
    return select({
        _LINUX: [":" + folder + CUDA_LIBRARY, ":cuda_stream_sources"],
        "//conditions:default": [],
    })
