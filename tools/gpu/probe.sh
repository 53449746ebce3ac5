#!/usr/bin/env bash
# What the links between this machine's GPUs give: builds probe/link-probe.cu and runs it on all GPUs (CUDA_VISIBLE_DEVICES
# restricts them). About two minutes on four; prints its tables last.
# Usage: probe.sh [OUT]    writes links.md, links.json, topology.txt and nccl.log to OUT (build/probe)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${1:-../../build/probe}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
give_up() {
  echo "probe.sh: $*" >&2
  exit 1
}

nvcc=$(command -v nvcc) || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || give_up "no nvcc in PATH nor at $nvcc; install the CUDA toolkit or set CUDA_HOME"
toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
site=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null) || site=
# The toolkit, Debian's packages, and those of pip, where toolkits have folders of their own.
places=("${NCCL_HOME:-$toolkit}" "$toolkit" "$toolkit/targets/x86_64-linux" /usr/local/cuda /usr)
for packages in "${site:-/nowhere}"; do
  places+=("$packages"/nvidia/{nccl,cu13,cublas})
done
find_library() { # header library: its two folders in $include and $lib
  local place folder
  for place in "${places[@]}"; do
    for folder in lib lib64 lib/x86_64-linux-gnu; do
      include=$place/include lib=$place/$folder
      [ -f "$include/$1" ] && [ -f "$lib/$2" ] && return
    done
  done
  give_up "no $1 with $2 in ${places[*]}; install NCCL and cuBLAS for CUDA 13, or set NCCL_HOME"
}
find_library nccl.h libnccl.so.2
flags=(-I "$include" -L "$lib" -l:libnccl.so.2 -Xlinker "-rpath,$lib")
find_library cublasLt.h libcublasLt.so.13
flags+=(-I "$include" -L "$lib" -l:libcublasLt.so.13 -Xlinker "-rpath,$lib")

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
[[ $capability =~ ^[0-9]+$ && $capability != 90 ]] || capability=90a
# C++17: in C++20 the front end of nvcc 13.0 fails an assertion of its own on std::vector of GCC 12.
"$nvcc" -std=c++17 -O2 -I../.. -gencode "arch=compute_$capability,code=sm_$capability" -Xcompiler -Wall,-Wextra \
  probe/link-probe.cu -o "$out/link-probe" "${flags[@]}" -ldl || give_up "link-probe does not build"

{
  nvidia-smi
  nvidia-smi topo -m
  nvidia-smi nvlink --status
} > "$out/topology.txt" 2>&1
# NCCL's account of channels, windows and copy engines; lines at start only, so that it costs no time.
rm -f "$out"/nccl.*
export NCCL_DEBUG=${NCCL_DEBUG:-INFO} NCCL_DEBUG_SUBSYS=${NCCL_DEBUG_SUBSYS:-INIT,ENV}
export NCCL_DEBUG_FILE=${NCCL_DEBUG_FILE:-$out/nccl.part.%p}
rm -f "$out/links.json"
"$out/link-probe" "$out/links.json"
status=$?
cat "$out"/nccl.part.* > "$out/nccl.log" 2>/dev/null
rm -f "$out"/nccl.part.*
[ -f "$out/links.json" ] && python3 probe/tables.py "$out/links.json" | tee "$out/links.md"
exit $status
