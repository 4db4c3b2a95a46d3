#include "agent/perf/scope.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "agent/perf/pmu.h"
#include "base/system.h"

namespace flamewire::agent {

Result<std::vector<std::uint32_t>> cpus_of(const Scope& scope) {
    std::vector<std::uint32_t> online = online_cpus(real_sysfs());
    for (const std::uint32_t cpu : scope.cpus)
        if (std::ranges::find(online, cpu) == online.end())
            return fail(ErrorCode::not_found,
                        fmt::format("CPU {} is not online (there are {})", cpu, cpu_list_text(online)));
    if (!scope.cpus.empty()) return scope.cpus;
    return online;
}

Result<std::vector<UniqueFd>> open_cgroups(const Scope& scope) {
    std::vector<UniqueFd> folders;
    for (const std::string& path : scope.cgroups) {
        UniqueFd folder(System::current().open(path, O_DIRECTORY));
        if (!folder) return fail_errno(fmt::format("open control group {}", path), -folder.get());
        folders.push_back(std::move(folder));
    }
    return folders;
}

}  // namespace flamewire::agent
