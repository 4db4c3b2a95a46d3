#!/usr/bin/env bash
# Fetches the files that an emulated board boots, once: Debian's kernel for virtual machines or for Arm boards, and busybox, unpacked below a
# cache. Prints the folder: vmlinuz, busybox, modules/ (in the order in which the network card needs them, names in modules/order).
set -euo pipefail

die() { printf 'images.sh: %s\n' "$*" >&2; exit 1; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../toolchains/private-apt.sh"

architecture=${1:-}
case $architecture in
  arm64) kernel=linux-image-cloud-arm64 modules='virtio_ring virtio virtio_mmio failover net_failover virtio_net' ;;
  armhf) kernel=linux-image-armmp-lpae modules='virtio_ring virtio virtio_mmio failover net_failover virtio_net' ;;
  *) die "usage: images.sh arm64|armhf" ;;
esac
root=${XDG_CACHE_HOME:-$HOME/.cache}/flamewire/boards/$architecture
if [ -f "$root/.complete" ]; then
  printf '%s\n' "$root"
  exit 0
fi

mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
printf 'Fetching a kernel for %s boards ...\n' "$architecture" >&2
private_apt "$architecture" "$work"
# The meta package names the newest kernel. Only that package is fetched, without its dependencies.
image=$(LC_ALL=C APT_CONFIG=$work/apt/conf apt-cache depends "$kernel" | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
[ -n "$image" ] || die "there is no $kernel for $architecture"
mkdir -p "$work/apt/cache/archives"
(cd "$work/apt/cache/archives" && apt download "$image:$architecture" "busybox-static:$architecture") >"$work/apt/log" 2>&1 ||
  { cat "$work/apt/log" >&2; die "apt cannot provide $image and busybox-static"; }
packages_unpack "$work/unpacked"

mkdir -p "$work/root/modules"
cp "$work/unpacked/packages.sha256" "$work/root/"
cp "$work/unpacked/boot/vmlinuz-"* "$work/root/vmlinuz"
busybox=$work/unpacked/bin/busybox
cp "$busybox" "$work/root/busybox"
for module in $modules; do
  file=$(find "$work/unpacked" -name "$module.ko*" -type f | head -1)
  [ -n "$file" ] || continue  # built in
  case $file in
    *.xz) xz -dc "$file" >"$work/root/modules/$module.ko" ;;
    *) cp "$file" "$work/root/modules/$module.ko" ;;
  esac
  printf '%s.ko\n' "$module" >>"$work/root/modules/order"
done
touch "$work/root/.complete"
rm -rf "$root"
mv "$work/root" "$root"
printf '%s\n' "$root"
