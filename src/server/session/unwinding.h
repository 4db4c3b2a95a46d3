// How the user stacks of a session are unwound and how complete they are: the agent's counts for each process, listed
// and summed. A value, part of SessionInfo.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "profile/store/store.h"

namespace flamewire::server {

// Results of unwinding user stacks, for one process or all of them. wire::ProcessUnwind explains each number.
struct UnwindCounts {
    std::uint64_t samples = 0, whole = 0, joined = 0, truncated = 0, open_end = 0, stopped = 0;
    std::uint64_t frames = 0, stack_bytes = 0;
    bool operator==(const UnwindCounts&) const = default;
};

struct UnwindProcess {
    std::uint32_t pid = 0;
    std::string comm, mode, why;
    UnwindCounts counts;
    bool operator==(const UnwindProcess&) const = default;
};

// How the user stacks of a session are unwound.
struct Unwinding {
    static constexpr std::size_t most_processes = 200;  // listed: those with most samples

    std::string mode;  // as requested
    std::uint32_t stack_bytes = 0, max_depth = 0;
    UnwindCounts total;
    std::uint64_t process_count = 0;
    std::vector<UnwindProcess> processes;  // by samples, descending; not in the sidecar
    bool operator==(const Unwinding&) const = default;
};

// For all processes of a store, and its recording.
Unwinding unwinding_of(const profile::Store& store);

// Members of an open object: unwind, stack_bytes, max_depth and unwind_totals; the second function writes
// unwind_processes.
void write_unwinding(JsonWriter& json, const Unwinding& unwinding);
void write_unwind_processes(JsonWriter& json, const Unwinding& unwinding);

}  // namespace flamewire::server
