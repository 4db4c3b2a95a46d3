// Which container, and which pod, a cgroup path stands for, as container runtimes and systemd name their groups. The
// formats have no specification but the runtimes' sources; docs/processes.md lists those that are known. Pure.
#pragma once

#include <string>
#include <string_view>

namespace flamewire {

struct CgroupPath {
    // Of the innermost container: 64 hex digits (Docker, containerd, CRI-O, Podman, Kubernetes), or the name of an LXC
    // container or of a machine of systemd-nspawn. Empty: in none that its path tells.
    std::string container_id;
    // Of the innermost pod: Kubernetes' uid with dashes where it has them, or Podman's id of 64 hex digits. Empty: none.
    std::string pod_uid;
    bool operator==(const CgroupPath&) const = default;
};

// `path`: behind the second colon of a line of /proc/PID/cgroup, of either version. Never fails: what is not known is
// in no container.
CgroupPath parse_cgroup_path(std::string_view path);

// How people name them. A container or pod by its id or name, or by the first digits of an id of 32 or more: at least
// four, as `docker ps` shows twelve.
bool names_id(std::string_view wanted, std::string_view id);
// A group by its path, with all groups below it; a missing leading and any trailing '/' do not matter.
bool names_cgroup(std::string_view wanted, std::string_view path);

}  // namespace flamewire
