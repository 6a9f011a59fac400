"""What MODULE.bazel uses; Bazel 4 and 5, which have no module_extension, never load it."""

load(":python.bzl", "local_python")

python = module_extension(
    implementation = lambda _: local_python(name = "local_python"),
)
