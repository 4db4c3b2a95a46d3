#!/usr/bin/env bash
# Fetches the source of mbed TLS, which encrypts the link between agent and server: Debian's source package with its
# patches applied. It is compiled with only the required cipher suite (cmake/MbedTls.cmake), because Debian's library
# contains all of them: 676 KB instead of 50 KB. It neither changes the machine nor needs root, like sysroot.sh
# (private-apt.sh).
set -euo pipefail

usage() {
  cat <<TXT
Usage: toolchains/mbedtls.sh [DIR]
  DIR   the output folder (default: \$FLAMEWIRE_MBEDTLS, or \$XDG_CACHE_HOME/flamewire/mbedtls). A complete one is kept as it is.
Without Debian's mirrors: unpack mbed TLS 2.28 yourself and configure with -DFLAMEWIRE_MBEDTLS=DIR.
TXT
}
die() { printf 'mbedtls.sh: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in -h | --help) usage; exit 0 ;; esac
if [ $# -gt 1 ]; then usage >&2; exit 2; fi
root=${1:-${FLAMEWIRE_MBEDTLS:-${XDG_CACHE_HOME:-$HOME/.cache}/flamewire/mbedtls}}
if [ -f "$root/.complete" ]; then
  printf '%s\n' "$root"
  exit 0
fi
if [ -e "$root" ] && [ -n "$(ls -A "$root")" ]; then die "$root exists and was not made by this script: give another folder"; fi
command -v dpkg-source >/dev/null || die "dpkg-source is missing: install dpkg-dev"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=toolchains/private-apt.sh
. "$here/private-apt.sh"

mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
printf 'Fetching the source of mbed TLS ...\n' >&2
private_apt_sources "$(dpkg --print-architecture)" "$work"
(cd "$work" && apt source --download-only mbedtls >"$work/apt/log" 2>&1) ||
  { cat "$work/apt/log" >&2; die "apt cannot provide the source of mbedtls"; }
dpkg-source --no-check -x "$work"/mbedtls_*.dsc "$work/root" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "the source of mbedtls cannot be unpacked"; }
# Keep only the library and its licenses: three quarters of the source are tests.
mv "$work/root/debian/copyright" "$work/root/copyright"
rm -rf "$work"/root/{tests,programs,docs,doxygen,debian,.pc,configs,visualc,3rdparty}
touch "$work/root/.complete"
chmod 755 "$work/root"
rm -rf "$root"
mv "$work/root" "$root"
printf '%s\n' "$root"
