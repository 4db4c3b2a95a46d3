// Finds the container and the pod that a cgroup path belongs to, by the names that container runtimes and systemd give
// their cgroups. The only specification of these formats is the runtimes' source code. docs/processes.md lists the
// formats that are supported. Pure.
#pragma once

#include <string>
#include <string_view>

namespace flamewire {

struct CgroupPath {
    // ID of the innermost container: 64 hex digits (Docker, containerd, CRI-O, Podman, Kubernetes), or the name of an
    // LXC container or of a systemd-nspawn machine. Empty if the path names no container.
    std::string container_id;
    // ID of the innermost pod: the Kubernetes UID, with its dashes if it has any, or Podman's 64 hex digits. Empty if
    // none.
    std::string pod_uid;
    bool operator==(const CgroupPath&) const = default;
};

// `path` is the text after the second colon of a line in /proc/PID/cgroup, of either cgroup version. Never fails: an
// unknown format counts as no container.
CgroupPath parse_cgroup_path(std::string_view path);

// Whether `wanted` selects this container or pod: it is the whole id or name, or a prefix of at least four digits of an
// id that has 32 or more (`docker ps` prints twelve).
bool names_id(std::string_view wanted, std::string_view id);
// Whether `path` is the cgroup `wanted` or below it. A missing leading '/' and any trailing '/' do not matter.
bool names_cgroup(std::string_view wanted, std::string_view path);

}  // namespace flamewire
