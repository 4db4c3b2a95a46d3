# shellcheck shell=bash
# Packages of another Debian architecture without touching the machine: apt works on a private state, dpkg knows nothing of it, no root
# is needed. Which mirrors are asked, and how, is what the machine's own apt configuration says. Sourced by scripts that say
# `set -euo pipefail` and define `die MESSAGE`.

# private_apt ARCHITECTURE WORK: makes the state below WORK and asks the mirrors what there is. Afterwards `apt` is apt-get on it, and
# what it downloads is in WORK/apt/cache/archives.
private_apt() {
  private_apt_state "$1" "$2"
  private_apt_update
}

# private_apt_sources ARCHITECTURE WORK: the same for source packages alone, which the machine's configuration need not name: they are
# asked of the mirrors that it names for packages.
private_apt_sources() {
  private_apt_state "$1" "$2"
  local folder=$2/apt/sources list='' parts='' file
  mkdir -p "$folder"
  eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
  for file in "$list" "${parts%/}"/*.list; do
    if [ -f "$file" ]; then sed -n -E 's/^[[:space:]]*deb(-src)?([[:space:]])/deb-src\2/p' "$file" | LC_ALL=C sort -u >"$folder/$(basename "$file" .list).list"; fi
  done
  for file in "${parts%/}"/*.sources; do
    if [ -f "$file" ]; then sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$folder/$(basename "$file")"; fi
  done
  printf 'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "%s";\n' "$folder" >>"$2/apt/conf"
  private_apt_update
}

private_apt_state() {
  local architecture=$1 tool
  private_apt_work=$2
  for tool in apt-get apt-config dpkg-deb sha256sum; do
    command -v "$tool" >/dev/null || die "$tool is missing: this needs a Debian system"
  done
  local apt=$private_apt_work/apt
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
  : >"$apt/status"
  # All settings of the machine's apt, without the hooks (they clean the machine's own cache) and with other folders.
  {
    apt-config dump | grep -v -E '::(Pre|Post)-Invoke|^APT::Architecture|^Dir::(State|Cache|Log)'
    cat <<CONF
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Install-Recommends "false";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Log "$apt";
Debug::NoLocking "true";
CONF
    # apt gives up root while it downloads, and another user cannot write here.
    if [ "$(id -u)" = 0 ]; then printf 'APT::Sandbox::User "root";\n'; fi
  } >"$apt/conf"
}

private_apt_update() {
  # One source without this architecture, or with a damaged index, must not stop this: the others may have everything.
  if ! apt update >"$private_apt_work/apt/log" 2>&1; then
    printf 'apt cannot read all of its sources; what it says, and then does without:\n' >&2
    grep '^E:' "$private_apt_work/apt/log" >&2 || true
  fi
}
apt() { APT_CONFIG=$private_apt_work/apt/conf LC_ALL=C apt-get -q "$@"; }

# apt_download PACKAGE...: these and what they need.
apt_download() {
  apt -y --download-only install "$@" >"$private_apt_work/apt/log" 2>&1 ||
    { cat "$private_apt_work/apt/log" >&2; die "apt cannot provide $*"; }
}

# packages_unpack DIR KNOWN...: all that was downloaded, with its checksums in DIR/packages.sha256. A package of a name and version that
# one of the KNOWN lists has with another checksum is refused.
packages_unpack() {
  local root=$1 list differs package link
  shift
  mkdir -p "$root"
  (cd "$private_apt_work/apt/cache/archives" && sha256sum -- *.deb) | sed 's/%3a/:/' | LC_ALL=C sort -k2 >"$root/packages.sha256"
  for list in "$@"; do
    [ -f "$list" ] || continue
    differs=$(awk 'NR == FNR { sum[$2] = $1; next } ($2 in sum) && sum[$2] != $1 { print $2 }' "$list" "$root/packages.sha256")
    [ -z "$differs" ] || die "not the packages that $list recorded: $(tr '\n' ' ' <<<"$differs")"
  done
  for package in "$private_apt_work"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  # A link to /lib/... would lead to the machine's own.
  find "$root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfnr "$root$(readlink "$link")" "$link"
  done
}
