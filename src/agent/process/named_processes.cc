#include "agent/process/named_processes.h"

#include <algorithm>

#include "agent/process/process_list.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t scans_of_young = 6, scans_between_checks = 10;

}  // namespace

std::string NamedProcesses::text() const {
    std::string text;
    for (const std::string& name : names_) text += (text.empty() ? "" : " or ") + name;
    return text;
}

std::vector<std::uint32_t> NamedProcesses::scan() {
    ++scans_;
    std::vector<std::uint32_t> found;
    const bool checks_all = scans_ % scans_between_checks == 0;
    for (const std::uint32_t pid : list_pids(proc_root_)) {
        const auto [entry, fresh] = seen_.try_emplace(pid, Seen{.first_scan = scans_});
        Seen& seen = entry->second;
        if (fresh || seen.has_name || checks_all || scans_ - seen.first_scan < scans_of_young)
            seen.has_name = has_name(pid, names_, proc_root_);
        seen.last_scan = scans_;
        if (seen.has_name) found.push_back(pid);
    }
    std::erase_if(seen_, [&](const auto& entry) { return entry.second.last_scan != scans_; });
    std::ranges::sort(found);
    return found;
}

}  // namespace flamewire::agent
