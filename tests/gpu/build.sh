#!/usr/bin/env bash
# Builds the library that check.py calls: what the CUDA backend has below TensorFlow. Functions that
# TensorFlow would have to provide are not reached from core.cc and left out by the linker.
#
#   tests/gpu/build.sh OUTPUT
set -euo pipefail
cd "$(dirname "$0")/../.."

${CXX:-c++} -std=c++17 -O2 -DNDEBUG -fPIC -shared -fvisibility=hidden -ffunction-sections \
  -Wall -Wextra -Wl,--gc-sections -Icc -o "$1" tests/gpu/core.cc \
  cc/backends/cuda/*/*.cc cc/core/{multi_layer_rnn,params_layout,shape}.cc -ldl -pthread
