#include "agent/probes/probe_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "agent/process/maps.h"
#include "agent/process/proc_text.h"
#include "base/rooted_path.h"
#include "base/system.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t line_bytes = 8192, max_files = 64, max_mapped = 4'096, max_entries = 65'536;

constexpr std::array<std::string_view, 8> folders{"/lib/",     "/usr/lib/",       "/lib64/", "/usr/lib64/",
                                                  "/usr/bin/", "/usr/local/lib/", "/bin/",   "/usr/local/bin/"};
constexpr std::array<std::string_view, 6> debian_folders{
    "", "x86_64-linux-gnu/", "aarch64-linux-gnu/", "arm-linux-gnueabihf/", "i386-linux-gnu/", "s390x-linux-gnu/"};

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Collects files, each once.
class Found {
public:
    // False if `place`, a path here, is not a regular file. `wanted_inode`: of the mapped file; 0: any.
    bool add(const std::string& place, std::string path, bool link, std::uint64_t wanted_inode) {
        System& system = System::current();
        FileStatus facts;
        if (system.status(place, link, facts) != 0 || !facts.regular) return false;
        if (wanted_inode != 0 && facts.inode != wanted_inode) return false;
        const std::pair key(facts.device, facts.inode);
        if (std::ranges::find(keys_, key) != keys_.end()) return true;
        if (files_.size() == max_files) return false;
        UniqueFd file(system.open_same(place, O_NONBLOCK | O_NOCTTY | (link ? 0 : O_NOFOLLOW), facts));
        if (!file) return false;
        keys_.push_back(key);
        files_.push_back({std::move(path), std::move(file)});
        return true;
    }
    std::vector<ProbeFile> take() { return std::move(files_); }
    [[nodiscard]] bool empty() const { return files_.empty(); }

private:
    std::vector<std::pair<std::uint64_t, std::uint64_t>> keys_;  // device, inode
    std::vector<ProbeFile> files_;
};

bool add_by_path(Found& found, const std::string& root, const std::string& path) {
    const std::string place = path_in_root(root, path);
    return !place.empty() && found.add(place, path, false, 0);
}

// True if the process has such a file mapped with its code.
bool add_mapped(Found& found, std::uint32_t pid, const std::string& name) {
    const std::string process = fmt::format("/proc/{}", pid);
    const std::string root = process + "/root";
    std::uint64_t inode = 0;
    if (name.starts_with('/')) {
        FileStatus facts;
        if (const std::string place = path_in_root(root, name);
            !place.empty() && System::current().status(place, false, facts) == 0)
            inode = facts.inode;
    }
    auto lines = LineReader::open(process + "/maps", line_bytes);
    if (!lines) return false;
    bool any = false;
    std::string_view line;
    while (lines->next(line)) {
        const auto entry = parse_maps_line(line);
        if (!entry || !entry->executable || entry->inode == 0) continue;
        const bool named =
            name.starts_with('/') ? entry->path == name || entry->inode == inode : has_file_name(entry->path, name);
        if (!named) continue;
        // The link is right even if another file has taken the name, but needs a capability.
        any =
            found.add(fmt::format("{}/map_files/{:x}-{:x}", process, entry->start, entry->end), entry->path, true, 0) ||
            found.add(path_in_root(root, entry->path), entry->path, false, entry->inode) || any;
    }
    return any;
}

// Files of that name, or its libraries: "libc" for libc.so.6. Without a version, libc.so is a linker script.
bool add_from_folder(Found& found, const std::string& root, const std::string& folder, const std::string& name) {
    if (add_by_path(found, root, folder + name)) return true;
    std::vector<std::string> entries;
    const std::string place = path_in_root(root, folder);
    if (place.empty() || System::current().list(place, max_entries, entries) != 0) return false;
    bool any = false;
    for (const std::string& entry : entries)
        if (entry.starts_with(name + ".so.")) any = add_by_path(found, root, folder + entry) || any;
    return any || add_by_path(found, root, folder + name + ".so");
}

bool add_from_folders(Found& found, const std::string& root, const std::string& name) {
    for (const std::string_view folder : folders)
        for (const std::string_view debian : debian_folders)
            if (add_from_folder(found, root, fmt::format("{}{}", folder, debian), name)) return true;
    return false;
}

void add_unmapped(Found& found, const std::string& root, const std::string& name, const std::string& program) {
    if (name.starts_with('/')) {
        (void)add_by_path(found, root, name);
    } else if (!program.empty() && last_part(program) == name) {
        (void)found.add(program, program, true, 0);
    } else if (name.find('/') == std::string::npos) {
        (void)add_from_folders(found, root, name);
    }
}

std::unexpected<Error> not_found(const std::string& name, const ProbeTarget& target) {
    if (target.mapped_only)
        return fail(
            ErrorCode::not_found,
            fmt::format("no recorded process has code of {} in memory; this agent lets servers profile only some "
                        "processes, and probe only what these use",
                        name));
    if (name.starts_with('/')) return fail(ErrorCode::not_found, fmt::format("{} does not exist", name));
    if (name.find('/') != std::string::npos)
        return fail(ErrorCode::not_found, fmt::format("{} is not an absolute path", name));
    return fail(ErrorCode::not_found,
                fmt::format("no recorded process uses a file named {}, and the folders of libraries and programs have "
                            "none; give its path",
                            name));
}

}  // namespace

std::vector<std::string> mapped_code_files(const std::vector<std::uint32_t>& pids) {
    std::vector<std::string> paths;
    for (const std::uint32_t pid : pids) {
        auto lines = LineReader::open(fmt::format("/proc/{}/maps", pid), line_bytes);
        if (!lines) continue;
        std::string_view line;
        while (lines->next(line) && paths.size() < max_mapped) {
            auto entry = parse_maps_line(line);
            if (entry && entry->executable && entry->inode != 0 && std::ranges::find(paths, entry->path) == paths.end())
                paths.push_back(std::move(entry->path));
        }
    }
    return paths;
}

bool has_file_name(std::string_view path, std::string_view name) {
    const std::string_view last = last_part(path);
    if (!last.starts_with(name)) return false;
    return last.size() == name.size() || last.substr(name.size()).starts_with(".so");
}

Result<std::vector<ProbeFile>> find_probe_files(const std::string& name, const ProbeTarget& target) {
    Found found;
    for (const std::uint32_t pid : target.pids)
        if (!add_mapped(found, pid, name) && !target.mapped_only)
            add_unmapped(found, fmt::format("/proc/{}/root", pid), name, {});
    if (target.pids.empty() && !target.mapped_only) add_unmapped(found, "/", name, target.program);
    if (found.empty()) return not_found(name, target);
    return found.take();
}

}  // namespace flamewire::agent
