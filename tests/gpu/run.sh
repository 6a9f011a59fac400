#!/usr/bin/env bash
# Checks the CUDA backend on a machine with an NVIDIA GPU, a C++17 compiler and PyTorch with its CUDA
# wheels (CUDA 12 or 13, cuDNN 9), without TensorFlow and without a network: builds the backend,
# compares it with PyTorch, times both, then looks for wrong accesses to memory with compute-sanitizer
# where that is installed. Takes at most ten minutes.
#
#   bash tests/gpu/run.sh OUT_DIR [PYTHON]
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "$1")
python=${2:-python3}
mkdir -p "$out"

# cuDNN, cuBLAS and NVRTC lie in PyTorch's wheels.
folders=$("$python" -c '
import glob, importlib.util
spec = importlib.util.find_spec("nvidia")
roots = list(spec.submodule_search_locations) if spec else []
print(":".join(f for root in roots for f in sorted(glob.glob(f"{root}/*/lib"))))')
export LD_LIBRARY_PATH="$folders${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

tests/gpu/build.sh "$out/core.so" || exit 2
timeout 360 "$python" tests/gpu/check.py "$out/core.so" "$out" 2>&1 | tee "$out/check.log"
status=${PIPESTATUS[0]}

# Refused on some machines; then skipped. Our kernels have no shared memory, so memcheck is enough.
if command -v compute-sanitizer >/dev/null; then
  ours=()
  for name in forward_step backward_step previous_h peephole_sums _rows input_grad step_grads sum_partial; do
    ours+=(--kernel-regex "kns=$name")
  done
  timeout 60 compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 9 \
    "${ours[@]}" "$python" tests/gpu/check.py "$out/core.so" \
    "$out/memcheck" --small >"$out/memcheck.log" 2>&1
  found=$?
  echo "memcheck: exit status $found (0: no error, 9: errors, 124: the time was over)" |
    tee -a "$out/check.log"
  [ "$found" = 9 ] && status=9
fi
exit "$status"
