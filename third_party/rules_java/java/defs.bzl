"""Stand-in for @rules_java, which Bazel's own tools load: hands on the built-in rules."""

java_binary = native.java_binary
java_import = native.java_import
java_runtime = native.java_runtime
java_toolchain = native.java_toolchain
