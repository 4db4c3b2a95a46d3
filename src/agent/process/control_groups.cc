#include "agent/process/control_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "agent/process/process_list.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_mountinfo_bytes = std::size_t{1} << 20;
constexpr std::size_t max_named = 8;  // containers listed in a message
constexpr std::size_t short_id = 12;  // digits of an id, as container runtimes print it

// mountinfo escapes blanks and similar characters, as \040.
std::string unescaped(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string_view digits = text.substr(i + 1, 3);
        if (text[i] != '\\' || digits.size() != 3) {
            plain += text[i];
            continue;
        }
        const auto code = take_number(digits, 8);
        plain += static_cast<char>(code.value_or('?'));
        i += 3;
    }
    return plain;
}

bool is_folder(const std::string& path) {
    const auto facts = file_status(path);
    return facts && facts->directory;
}

bool is_inside(std::string_view path, std::string_view of) {
    return path.size() > of.size() && path.starts_with(of) && path[of.size()] == '/';
}

struct Mount {
    std::string folder;
    bool is_second_version = false, has_perf_event = false;
};

// proc(5): 36 35 98:0 ROOT MOUNT-POINT OPTIONS [fields] - TYPE SOURCE SUPER-OPTIONS
std::vector<Mount> cgroup_mounts(std::string_view mountinfo) {
    std::vector<Mount> mounts;
    while (!mountinfo.empty()) {
        const std::size_t newline = mountinfo.find('\n');
        std::string_view line = mountinfo.substr(0, newline);
        mountinfo.remove_prefix(newline == std::string_view::npos ? mountinfo.size() : newline + 1);
        const std::size_t dash = line.find(" - ");
        if (dash == std::string_view::npos) continue;
        std::string_view rest = line.substr(dash + 3);
        const std::string_view type = take_field(rest);
        if (!type.starts_with("cgroup")) continue;
        for (int skipped = 0; skipped < 4; ++skipped) (void)take_field(line);
        std::string folder = unescaped(take_field(line));
        (void)take_field(rest);
        mounts.push_back({std::move(folder), type == "cgroup2", rest.find("perf_event") != std::string_view::npos});
    }
    return mounts;
}

std::string sampled_mount(const std::vector<Mount>& mounts) {
    std::string first_version;
    for (const Mount& mount : mounts) {
        if (mount.is_second_version) return mount.folder;
        if (mount.has_perf_event) first_version = mount.folder;
    }
    return first_version;
}

}  // namespace

std::string cgroup_mount(std::string_view mountinfo) { return sampled_mount(cgroup_mounts(mountinfo)); }

Result<std::vector<std::string>> find_cgroups(const std::vector<std::string>& names, const std::string& proc_root) {
    const auto mountinfo = read_head(proc_root + "/self/mountinfo", max_mountinfo_bytes);
    const std::vector<Mount> mounts = cgroup_mounts(mountinfo ? std::string_view(*mountinfo) : std::string_view());
    const std::string mount = sampled_mount(mounts);
    const auto is_below_a_mount = [&](const std::string& path) {
        return std::ranges::any_of(mounts,
                                   [&](const Mount& one) { return path == one.folder || is_inside(path, one.folder); });
    };
    std::vector<std::string> folders;
    for (const std::string& name : names) {
        std::string path = name;
        while (path.ends_with('/')) path.pop_back();
        // A path copied from /proc/PID/cgroup also begins with a slash.
        if (!is_below_a_mount(path))
            path = fmt::format("{}{}{}", mount, path.empty() || path.starts_with('/') ? "" : "/", path);
        // A server must not access other folders, not even to learn whether they exist.
        if (mount.empty() || fmt::format("{}/", path).find("/../") != std::string::npos || !is_folder(path))
            return fail(ErrorCode::not_found,
                        mount.empty()
                            ? fmt::format("there is no control group '{}': no cgroup2 is mounted here. Try: mount -t "
                                          "cgroup2 none /sys/fs/cgroup",
                                          name)
                            : fmt::format("there is no control group '{}' below {}", name, mount));
        folders.push_back(std::move(path));
    }
    std::ranges::sort(folders);
    const auto repeated = std::ranges::unique(folders);
    folders.erase(repeated.begin(), repeated.end());
    const std::vector<std::string> all = folders;
    std::erase_if(folders, [&](const std::string& folder) {
        return std::ranges::any_of(all, [&](const std::string& other) { return is_inside(folder, other); });
    });
    return folders;
}

std::vector<std::uint32_t> processes_of_cgroup(const std::string& folder, std::size_t limit) {
    std::vector<std::uint32_t> pids;
    auto lines = LineReader::open(folder + "/cgroup.procs", 4096);
    if (!lines) return pids;
    std::string_view line;
    while (pids.size() < limit && lines->next(line))
        if (const auto pid = take_number(line, 10)) pids.push_back(static_cast<std::uint32_t>(*pid));
    return pids;
}

Result<Container> find_container(std::string_view name, const std::string& proc_root) {
    std::map<std::string, std::string> groups;  // by id
    for (const std::uint32_t pid : list_pids(proc_root)) {
        Cgroup cgroup = read_cgroup(proc_root, pid);
        if (cgroup.container_id.empty()) continue;
        // Groups inside the container's own group belong to it.
        if (const std::size_t at = cgroup.path.find(cgroup.container_id); at != std::string::npos)
            cgroup.path.resize(std::min(cgroup.path.find('/', at), cgroup.path.size()));
        std::string& known = groups[cgroup.container_id];
        if (known.empty() || cgroup.path.size() < known.size()) known = std::move(cgroup.path);
    }
    std::vector<std::string> found, others;
    for (const auto& [id, path] : groups) {
        if (id == name) return Container{id, path};
        (id.starts_with(name) ? found : others).push_back(id);
    }
    if (found.size() == 1) return Container{found.front(), groups[found.front()]};
    const bool several = !found.empty();
    std::vector<std::string>& listed = several ? found : others;
    const std::size_t count = listed.size();
    listed.resize(std::min(count, max_named));
    std::string text;
    for (const std::string& id : listed)
        text += (text.empty() ? "" : ", ") + (several ? id : id.substr(0, std::max(short_id, name.size())));
    if (count > listed.size()) text += fmt::format(" and {} more", count - listed.size());
    if (several) return fail(ErrorCode::invalid, fmt::format("several containers begin with '{}': {}", name, text));
    return fail(ErrorCode::not_found, count == 0 ? fmt::format("no container '{}': no process here runs in one", name)
                                                 : fmt::format("no container '{}' (there are: {})", name, text));
}

}  // namespace flamewire::agent
