#include "agent/health/memory.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "agent/process/proc_text.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t buffer_bytes = 4096;
constexpr std::size_t max_cgroup_levels = 16;

// Whether the comma-separated `list` contains `name`.
bool lists(std::string_view list, std::string_view name) {
    for (;;) {
        const std::size_t comma = list.find(',');
        if (list.substr(0, comma) == name) return true;
        if (comma == std::string_view::npos) return false;
        list.remove_prefix(comma + 1);
    }
}

// The memory cgroup of this process: a mount point, under which `path` may not exist, and the names of its two files.
struct Accounting {
    std::string mount, path;
    const char *limit = nullptr, *usage = nullptr;
};

std::optional<Accounting> find_accounting(const HealthRoots& roots) {
    auto reader = LineReader::open(roots.proc + "/self/cgroup", buffer_bytes);
    if (!reader) return std::nullopt;
    std::optional<Accounting> unified;
    std::string_view line;
    while (reader->next(line)) {  // hierarchy:controllers:path
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const std::string_view controllers = line.substr(first + 1, second - first - 1);
        std::string path(line.substr(second + 1));
        // A cgroup namespace shows what lies outside of it by dots, and cannot be followed there.
        if (path.find("/..") != std::string::npos) path.clear();
        if (lists(controllers, "memory"))
            return Accounting{roots.sys + "/fs/cgroup/memory", std::move(path), "/memory.limit_in_bytes",
                              "/memory.usage_in_bytes"};
        if (controllers.empty())
            unified = Accounting{roots.sys + "/fs/cgroup", std::move(path), "/memory.max", "/memory.current"};
    }
    return unified;
}

}  // namespace

std::optional<std::uint64_t> Memory::used_kb() const {
    if (!total_kb) return std::nullopt;
    std::uint64_t rest = available_kb.value_or(0);
    if (!available_kb) {
        if (!free_kb) return std::nullopt;
        rest = *free_kb + buffers_kb.value_or(0) + cached_kb.value_or(0);
    }
    return *total_kb - std::min(rest, *total_kb);
}

Memory read_memory(const std::string& proc_root) {
    Memory memory;
    const std::array<std::pair<std::string_view, std::optional<std::uint64_t>*>, 7> wanted{{
        {"MemTotal:", &memory.total_kb},
        {"MemFree:", &memory.free_kb},
        {"MemAvailable:", &memory.available_kb},
        {"Buffers:", &memory.buffers_kb},
        {"Cached:", &memory.cached_kb},
        {"SwapTotal:", &memory.swap_total_kb},
        {"SwapFree:", &memory.swap_free_kb},
    }};
    auto reader = LineReader::open(proc_root + "/meminfo", buffer_bytes);
    if (!reader) return memory;
    std::string_view line;
    while (reader->next(line)) {
        const std::string_view key = take_field(line);
        const auto* const found =
            std::find_if(wanted.begin(), wanted.end(), [&](const auto& entry) { return entry.first == key; });
        if (found == wanted.end()) continue;
        std::string_view field = take_field(line);
        *found->second = take_number(field, 10);
    }
    return memory;
}

std::optional<MemoryLimit> read_memory_limit(const HealthRoots& roots, std::uint64_t total_kb) {
    std::optional<Accounting> place = find_accounting(roots);
    if (!place) return std::nullopt;
    std::string& path = place->path;
    std::uint64_t tightest = total_kb * 1024;
    std::optional<std::string> holder;
    for (std::size_t level = 0; level < max_cgroup_levels; ++level) {
        while (path.ends_with('/')) path.pop_back();
        const auto limit = read_number(place->mount + path + place->limit);  // "max" is not a number
        // Of two equal limits, the outer one has less memory left.
        if (limit && *limit <= tightest && *limit < total_kb * 1024) {
            tightest = *limit;
            holder = place->mount + path;
        }
        if (path.empty()) break;
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    if (!holder) return std::nullopt;
    MemoryLimit result{tightest / 1024, {}};
    if (const auto used = read_number(*holder + place->usage)) result.used_kb = *used / 1024;
    return result;
}

}  // namespace flamewire::agent
