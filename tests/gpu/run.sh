#!/usr/bin/env bash
# Checks the CUDA backend on a machine with an NVIDIA GPU, CUDA 12 or 13, cuDNN 9 and PyTorch, without
# TensorFlow: builds its core, compares it with PyTorch, looks for wrong accesses to memory with
# compute-sanitizer where that is installed, then times both. Not run on a GPU yet.
#
#   tests/gpu/run.sh [PYTHON]
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

tests/gpu/build.sh "$folder/core.so"
if command -v compute-sanitizer >/dev/null; then
  compute-sanitizer --error-exitcode 1 "$python" tests/gpu/check.py "$folder/core.so" --small
fi
"$python" tests/gpu/check.py "$folder/core.so"
