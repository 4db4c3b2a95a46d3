// A target that is not a list of processes: all that runs on some CPUs, or all that runs there in some control groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct Scope {
    bool wide = false;                           // false: processes instead
    std::vector<std::uint32_t> cpus = {};        // ascending; empty: all that are online
    std::vector<std::string> cgroups = {};       // folders, none inside another; empty: all tasks
    wire::StackMode mode = wire::StackMode::fp;  // of all samples
    bool operator==(const Scope&) const = default;
};

// not_found if a CPU is not online.
Result<std::vector<std::uint32_t>> cpus_of(const Scope& scope);
// Opens the folders of the control groups. Errors have an errno, and the message contains the folder's name.
Result<std::vector<UniqueFd>> open_cgroups(const Scope& scope);

}  // namespace flamewire::agent
