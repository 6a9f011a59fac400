"""Stand-in for @rules_cc: hands on the rules that Bazel 4 to 6 have built in."""

cc_binary = native.cc_binary
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
