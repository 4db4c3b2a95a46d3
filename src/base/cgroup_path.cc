#include "base/cgroup_path.h"

#include <algorithm>

namespace flamewire {
namespace {

constexpr std::size_t id_length = 64;
constexpr std::size_t uuid_length = 36;
constexpr std::size_t hash_length = 32;  // the uid of a static pod

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool take_prefix(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(suffix.size());
    return true;
}

// systemd escapes characters that a unit name must not contain as \xHH.
std::string unescaped(std::string_view name) {
    std::string text;
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name.substr(i).starts_with("\\x") && i + 3 < name.size() && is_hex(name[i + 2]) && is_hex(name[i + 3])) {
            text += static_cast<char>(digit(name[i + 2]) * 16 + digit(name[i + 3]));
            i += 3;
        } else {
            text += name[i];
        }
    }
    return text;
}

// The UID at the end of "pod<uid>" or "kubepods-burstable-pod<uid>.slice". The latter has '_' instead of '-'.
std::string kubernetes_pod(std::string_view part) {
    take_suffix(part, ".slice");
    for (const std::size_t length : {uuid_length, hash_length}) {
        if (part.size() < length + 3) continue;
        const std::string_view before = part.substr(0, part.size() - length);
        if (before != "pod" && !before.ends_with("-pod")) continue;
        std::string uid(part.substr(before.size()));
        std::ranges::replace(uid, '_', '-');
        bool good = true;
        for (std::size_t i = 0; i < length; ++i) {
            const bool dash = length == uuid_length && (i == 8 || i == 13 || i == 18 || i == 23);
            good = good && (dash ? uid[i] == '-' : is_hex(uid[i]));
        }
        if (good) return uid;
    }
    return {};
}

// Reads all IDs of 64 hex digits that runtimes use as names.
void read_digits(std::string_view part, CgroupPath& found) {
    for (std::size_t begin = 0; begin < part.size();) {
        std::size_t end = begin;
        while (end < part.size() && is_hex(part[end])) ++end;
        if (end - begin == id_length) {
            const std::string_view before = part.substr(0, begin);
            if (before.ends_with("_pod_"))  // machine-libpod_pod_ID.slice
                found.pod_uid = part.substr(begin, id_length);
            else if (!before.ends_with("conmon-"))  // conmon's cgroup has the ID of a container that it is not in
                found.container_id = part.substr(begin, id_length);
        }
        begin = end + 1;
    }
}

// LXC and systemd-nspawn use the container's name for its cgroup. `inside` is the rest of the path after `part`.
void read_name(std::string_view before, std::string_view part, std::string_view inside, CgroupPath& found) {
    const bool supervisor = inside == "supervisor" || inside.starts_with("supervisor/");
    std::string_view name = part;
    if (take_prefix(name, "lxc.payload.") || before == "lxc" || before == "lxc.payload") {
        found.container_id = name;
    } else if (take_prefix(name, "machine-") && take_suffix(name, ".scope")) {
        // Machines of libvirt are not containers.
        if (!name.starts_with("qemu\\x2d") && !supervisor) found.container_id = unescaped(name);
    } else if (name = part; take_prefix(name, "systemd-nspawn@") && take_suffix(name, ".service")) {
        if (!supervisor) found.container_id = unescaped(name);
    }
}

}  // namespace

CgroupPath parse_cgroup_path(std::string_view path) {
    CgroupPath found;
    std::string_view before;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
        if (part.empty()) continue;
        // containerd without the systemd cgroup driver: "kubepods-burstable-podUID.slice:cri-containerd:ID".
        if (std::string pod = kubernetes_pod(part.substr(0, part.find(':'))); !pod.empty())
            found.pod_uid = std::move(pod);
        read_name(before, part, path, found);
        read_digits(part, found);
        before = part;
    }
    return found;
}

bool names_id(std::string_view wanted, std::string_view id) {
    constexpr std::size_t shortest = 4;
    if (wanted.empty()) return false;
    return wanted == id || (wanted.size() >= shortest && id.size() >= hash_length && id.starts_with(wanted) &&
                            std::ranges::all_of(id, [](char c) { return is_hex(c) || c == '-'; }));
}

bool names_cgroup(std::string_view wanted, std::string_view path) {
    if (wanted.empty() || path.empty()) return false;
    take_prefix(wanted, "/");
    while (take_suffix(wanted, "/")) {
    }
    take_prefix(path, "/");
    return wanted.empty() || (take_prefix(path, wanted) && (path.empty() || path.front() == '/'));
}

}  // namespace flamewire
