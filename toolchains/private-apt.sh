# shellcheck shell=bash
# Packages of another Debian architecture without changing the machine: apt uses a private state, and neither dpkg nor
# root is involved. The mirrors are those of the machine's apt configuration. To be sourced by scripts that use `set
# -euo pipefail` and define `die MESSAGE`.

# private_apt ARCHITECTURE WORK: creates the state below WORK and reads the mirrors' indexes. Afterwards `apt` runs
# apt-get with this state, and downloads are in WORK/apt/cache/archives.
private_apt() {
  private_apt_state "$1" "$2"
  private_apt_update
}

# private_apt_sources ARCHITECTURE WORK: the same for source packages. The machine's configuration need not contain
# them: they come from its mirrors for binary packages.
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
  # All settings of the machine's apt, but without hooks, which clean the machine's cache, and with other folders.
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
    # apt drops root for downloads, and another user cannot write here.
    if [ "$(id -u)" = 0 ]; then printf 'APT::Sandbox::User "root";\n'; fi
  } >"$apt/conf"
}

private_apt_update() {
  # A source without this architecture or with a damaged index is not an error: the others may have all packages.
  if ! apt update >"$private_apt_work/apt/log" 2>&1; then
    printf 'apt cannot read all of its sources and continues without these:\n' >&2
    grep '^E:' "$private_apt_work/apt/log" >&2 || true
  fi
}
apt() { APT_CONFIG=$private_apt_work/apt/conf LC_ALL=C apt-get -q "$@"; }

# apt_download PACKAGE...: downloads the packages and their dependencies.
apt_download() {
  apt -y --download-only install "$@" >"$private_apt_work/apt/log" 2>&1 ||
    { cat "$private_apt_work/apt/log" >&2; die "apt cannot provide $*"; }
}

# packages_unpack DIR KNOWN...: unpacks all downloads and writes their checksums to DIR/packages.sha256. A package with
# the name and version but not the checksum of an entry in a KNOWN list is refused.
packages_unpack() {
  local root=$1 list differs package link
  shift
  mkdir -p "$root"
  (cd "$private_apt_work/apt/cache/archives" && sha256sum -- *.deb) | sed 's/%3a/:/' | LC_ALL=C sort -k2 >"$root/packages.sha256"
  for list in "$@"; do
    [ -f "$list" ] || continue
    differs=$(awk 'NR == FNR { sum[$2] = $1; next } ($2 in sum) && sum[$2] != $1 { print $2 }' "$list" "$root/packages.sha256")
    [ -z "$differs" ] || die "these are not the packages that $list recorded: $(tr '\n' ' ' <<<"$differs")"
  done
  for package in "$private_apt_work"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  # A link to /lib/... would lead to the machine's own folder.
  find "$root" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfnr "$root$(readlink "$link")" "$link"
  done
}
