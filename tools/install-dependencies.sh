#!/usr/bin/env bash
# Installs what building and testing Hydra needs on Debian 12. Needs root or sudo, and only if
# something is missing: otherwise it touches neither the network nor the machine.
set -euo pipefail

packages=(
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
  clang-22 clang-format-22 clang-tidy-22 libclang-rt-22-dev lld-22 liblld-22-dev
  ninja-build cmake ccache
  flatbuffers-compiler libflatbuffers-dev zlib1g-dev libzstd-dev libgtest-dev libdnnl-dev
  libcli11-dev nlohmann-json3-dev libspdlog-dev libxxhash-dev libasio-dev libgloo-dev
  libpcre2-dev libutf8proc-dev libkissfft-dev
  python3-psutil # with it lit ends tests that hang
  openmpi-bin slurmctld slurmd slurm-client munge # what starts ranks, for its tests
  chromium # the test of the page of a plan
)

fail() {
  echo "install-dependencies: $*" >&2
  exit 1
}

command -v dpkg-query >/dev/null ||
  fail "this machine has no dpkg; install the equivalents of: ${packages[*]}"

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null || true)
  grep -qx installed <<<"$status" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "run as root, or install sudo; missing: ${missing[*]}"
  as_root=(sudo)
fi

echo "install-dependencies: installing ${missing[*]}"
"${as_root[@]}" apt-get update

for package in "${missing[@]}"; do
  candidate=$(LC_ALL=C apt-cache policy "$package" | sed -n 's/^ *Candidate: //p')
  if [ -z "$candidate" ] || [ "$candidate" = "(none)" ]; then
    fail "no apt source of this machine has $package; on Debian 12, LLVM 22 is in the suite" \
      "bookworm-security (main), so add 'deb http://security.debian.org/debian-security" \
      "bookworm-security main' to /etc/apt/sources.list and run this again"
  fi
done

"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install --yes --no-install-recommends "${missing[@]}"
