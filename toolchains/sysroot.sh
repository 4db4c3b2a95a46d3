#!/usr/bin/env bash
# Makes a folder with the C library, static libraries and headers for an agent of another architecture, by unpacking
# Debian's packages of that architecture. It does not change the machine: apt uses a private state, and neither dpkg nor
# root is involved. The mirrors are those of the machine's apt configuration.
set -euo pipefail

# libc and the two libraries of the agent. The others are headers, and Catch2 is for tests/cross.
packages=(libc6-dev libunwind-dev libzstd-dev libasio-dev libfmt-dev rapidjson-dev libprotozero-dev catch2)

usage() {
  cat <<TXT
Usage: toolchains/sysroot.sh [--record] TRIPLET [DIR]
  TRIPLET   aarch64-linux-gnu, arm-linux-gnueabihf, s390x-linux-gnu or x86_64-linux-gnu
  DIR       the output folder (default: TRIPLET below \$FLAMEWIRE_SYSROOTS or \$XDG_CACHE_HOME/flamewire/sysroots).
            A complete one is kept as it is.
  --record  also add the checksums of the packages to toolchains/sysroot-packages.sha256
The checksums of all packages are in DIR/packages.sha256. A package whose name and version are recorded there or in
toolchains/sysroot-packages.sha256 with another checksum is refused.
TXT
}
die() { printf 'sysroot.sh: %s\n' "$*" >&2; exit 1; }

record=
if [ "${1:-}" = --record ]; then record=1; shift; fi
case "${1:-}" in -h | --help) usage; exit 0 ;; esac
if [ $# -lt 1 ] || [ $# -gt 2 ]; then usage >&2; exit 2; fi
triplet=$1
root=${2:-${FLAMEWIRE_SYSROOTS:-${XDG_CACHE_HOME:-$HOME/.cache}/flamewire/sysroots}/$triplet}
case $triplet in
  aarch64-linux-gnu) architecture=arm64 ;;
  arm-linux-gnueabihf) architecture=armhf ;;
  s390x-linux-gnu) architecture=s390x ;;
  x86_64-linux-gnu) architecture=amd64 ;;
  *) die "unknown triplet '$triplet'. Use aarch64-linux-gnu, arm-linux-gnueabihf, s390x-linux-gnu or x86_64-linux-gnu" ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
known=$here/sysroot-packages.sha256
# shellcheck source=toolchains/private-apt.sh
. "$here/private-apt.sh"

# A folder is complete if it was made from these packages. The stamp is written last.
stamp=$root/.complete
wanted="$architecture ${packages[*]}"
if [ -z "$record" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
  printf '%s\n' "$root"
  exit 0
fi
if [ -e "$root" ] && [ ! -f "$root/packages.sha256" ] && [ -n "$(ls -A "$root")" ]; then
  die "$root exists and was not made by this script: give another folder"
fi

mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
printf 'Making a sysroot for %s ...\n' "$triplet" >&2
private_apt "$architecture" "$work"
apt_download "${packages[@]}"
packages_unpack "$work/root" "$root/packages.sha256" "$known"

if [ -n "$record" ]; then
  touch "$known"
  LC_ALL=C sort -u -k2 "$known" "$work/root/packages.sha256" >"$work/known"
  cp "$work/known" "$known"
fi
printf '%s' "$wanted" >"$work/root/.complete"
chmod 755 "$work/root"
rm -rf "$root"
mv "$work/root" "$root"
printf '%s\n' "$root"
