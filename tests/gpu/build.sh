#!/usr/bin/env bash
# Builds the library that check.py calls: what the CUDA backend has below TensorFlow. Functions that
# TensorFlow would have to provide are not reached from core.cc and left out by the linker.
#
#   tests/gpu/build.sh OUTPUT
set -euo pipefail
cd "$(dirname "$0")/../.."

${CXX:-c++} -std=c++17 -O2 -DNDEBUG -fPIC -shared -fvisibility=hidden -ffunction-sections \
  -Wall -Wextra -Werror -Wl,--gc-sections -Icc -o "$1" tests/gpu/core.cc \
  cc/backends/cuda/{cell_kernels,cudnn_batch,cudnn_layers,cudnn_library,cudnn_stack}.cc \
  cc/backends/cuda/{cudnn_weights,device,libraries,own_stack,persistent,products,programs}.cc \
  cc/backends/cuda/{projection,rnn,sequences,stack,tensors,timing,ways}.cc \
  cc/backends/cuda/kernels/sources.cc cc/core/{params_layout,shape}.cc \
  cc/dialects/cudnn_rnn/problem.cc -ldl -pthread
