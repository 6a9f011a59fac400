// The stub library that stands for TensorFlow's at link time: see flags.bzl.
