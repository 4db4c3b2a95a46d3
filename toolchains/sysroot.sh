#!/usr/bin/env bash
# Makes a folder with the C library, the static libraries and the headers that an agent for another architecture is linked with:
# Debian's own packages of that architecture, unpacked. The machine itself is left alone: apt works on a private state, dpkg knows
# nothing of it, no root is needed. Which mirrors are asked and how is what the machine's own apt configuration says.
set -euo pipefail

# libc and the two libraries that go into the agent; the others are headers, and Catch2 is for the tests in tests/cross.
packages=(libc6-dev libunwind-dev libzstd-dev libasio-dev libfmt-dev rapidjson-dev libprotozero-dev catch2)

usage() {
  cat <<TXT
Usage: toolchains/sysroot.sh [--record] TRIPLET [DIR]
  TRIPLET   aarch64-linux-gnu, arm-linux-gnueabihf, s390x-linux-gnu or x86_64-linux-gnu
  DIR       where to (default: \$FLAMEWIRE_SYSROOTS/TRIPLET, which is \$XDG_CACHE_HOME/flamewire/sysroots unless set);
            a complete one is used as it is
  --record  also write the checksums of the packages into toolchains/sysroot-packages.sha256
The checksums of all packages are in DIR/packages.sha256. A package of a name and version that is recorded (there or in
toolchains/sysroot-packages.sha256) with another checksum is refused.
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
  *) die "'$triplet' is none of aarch64-linux-gnu, arm-linux-gnueabihf, s390x-linux-gnu, x86_64-linux-gnu" ;;
esac
for tool in apt-get apt-config dpkg-deb sha256sum; do
  command -v $tool >/dev/null || die "$tool is missing: this needs a Debian system"
done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
known=$here/sysroot-packages.sha256

# Complete means: made of these packages, to the end. The stamp is written last.
stamp=$root/.complete
wanted="$architecture ${packages[*]}"
if [ -z "$record" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
  printf '%s\n' "$root"
  exit 0
fi
if [ -e "$root" ] && [ ! -f "$root/packages.sha256" ] && [ -n "$(ls -A "$root")" ]; then
  die "$root is there and is no sysroot of ours: give another folder"
fi

mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial" "$work/root"
: >"$work/apt/status"

# All that the machine's apt is told, without the hooks (they clean the machine's own cache) and with other folders.
{
  apt-config dump | grep -v -E '::(Pre|Post)-Invoke|^APT::Architecture|^Dir::(State|Cache|Log)'
  cat <<CONF
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Install-Recommends "false";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::State "$work/apt/state";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache";
Dir::Log "$work/apt";
Debug::NoLocking "true";
CONF
  # apt gives up root while it downloads, and another user cannot write here.
  if [ "$(id -u)" = 0 ]; then printf 'APT::Sandbox::User "root";\n'; fi
} >"$work/apt/conf"
apt() { APT_CONFIG=$work/apt/conf LC_ALL=C apt-get -q "$@"; }

printf 'Making a sysroot for %s ...\n' "$triplet" >&2
# One source without this architecture, or with a damaged index, is no reason to stop: the others may have everything.
if ! apt update >"$work/apt/log" 2>&1; then
  printf 'sysroot.sh: apt cannot read all of its sources; what it says, and then does without:\n' >&2
  grep '^E:' "$work/apt/log" >&2 || true
fi
apt -y --download-only install "${packages[@]}" >"$work/apt/log" 2>&1 ||
  { cat "$work/apt/log" >&2; die "apt cannot provide ${packages[*]} for $architecture"; }

(cd "$work/apt/cache/archives" && sha256sum -- *.deb) | sed 's/%3a/:/' | LC_ALL=C sort -k2 >"$work/root/packages.sha256"
for list in "$root/packages.sha256" "$known"; do
  [ -f "$list" ] || continue
  differs=$(awk 'NR == FNR { sum[$2] = $1; next } ($2 in sum) && sum[$2] != $1 { print $2 }' "$list" "$work/root/packages.sha256")
  [ -z "$differs" ] || die "not the packages that $list recorded: $(tr '\n' ' ' <<<"$differs")"
done

for package in "$work"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$work/root"; done
# A link to /lib/... would lead to the machine's own.
find "$work/root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -sfnr "$work/root$(readlink "$link")" "$link"
done

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
