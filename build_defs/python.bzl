"""The Python interpreter that has TensorFlow: $PYTHON_BIN_PATH, or else python3."""

_BUILD = """
load("@rules_python//python:defs.bzl", "py_runtime", "py_runtime_pair")

py_runtime(
    name = "runtime",
    interpreter_path = "{interpreter}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _local_python(ctx):
    python = ctx.os.environ.get("PYTHON_BIN_PATH") or ctx.which("python3")
    if not python:
        fail("no python3 on the path: name a Python interpreter in PYTHON_BIN_PATH")

    # Its own word for where it is: a wrapper's path would not do in every sandbox.
    result = ctx.execute([python, "-c", "import sys; print(sys.executable)"])
    if result.return_code != 0:
        fail("%s does not run: %s" % (python, result.stderr))
    ctx.file("BUILD", _BUILD.format(interpreter = result.stdout.strip()))

local_python = repository_rule(
    implementation = _local_python,
    environ = ["PATH", "PYTHON_BIN_PATH"],
    local = True,
)
