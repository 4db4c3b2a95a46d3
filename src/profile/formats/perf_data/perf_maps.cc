#include "profile/formats/perf_data/perf_maps.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <utility>

#include "base/file.h"

namespace flamewire::profile::perf_data {
namespace {

// Limits for one map and for all maps. A large Java program has about 10 MiB.
constexpr std::size_t most_bytes_of_one = std::size_t{64} << 20, most_bytes = std::size_t{128} << 20;

bool is_regular(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_this_machine(const std::string& host) {
    utsname here{};
    return ::uname(&here) == 0 && host == here.nodename;
}

}  // namespace

PerfMaps::Entry& PerfMaps::entry(std::uint32_t pid) {
    const auto [found, added] = entries_.try_emplace(pid);
    Entry& entry = found->second;
    if (!added) return entry;
    const std::string name = fmt::format("/tmp/perf-{}.map", pid);
    std::string path = job_.in_sysroot(name);
    // Process ids of another machine mean nothing here.
    if (!is_regular(path) && is_this_machine(machine_.host)) path = name;
    if (!is_regular(path)) return entry;
    Result<std::string> text = read_file(path, most_bytes_of_one);
    if (!text || bytes_ + text->size() > most_bytes) return entry;
    bytes_ += text->size();
    entry.path = std::move(path);
    entry.map = std::make_unique<symbol::PerfMap>(std::move(*text));
    return entry;
}

const symbol::PerfMap* PerfMaps::of(const Process& process) {
    Entry& own = entry(process.pid);
    if (own.map != nullptr) return own.map.get();
    if (process.parent_pid != 0)
        if (const Entry& parent = entry(process.parent_pid); parent.map != nullptr) return parent.map.get();
    own.missing = true;
    own.comm = process.comm;
    return nullptr;
}

}  // namespace flamewire::profile::perf_data
