// Reads from /proc what the records do not contain: processes that started before the recording, and address spaces
// after lost records.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/process/jit_names.h"
#include "agent/process/module_cache.h"
#include "agent/process/process_registry.h"

namespace flamewire::agent {

class ProcessBackfill {
public:
    // All references must outlive this.
    ProcessBackfill(const ProcessTableOptions& options, ProcessRegistry& registry, ModuleCache& modules, JitNames& jit);

    // The process with this pid, read from /proc at first sight. If it is gone, it has no name and no maps.
    ProcessState& ensure_process(std::uint32_t pid, std::uint64_t time_ns);
    ThreadHandle ensure_thread(ProcessState& process, std::uint32_t tid);
    // Adds all running processes, with their names only.
    void note_living();
    // Reads the rest of a process that is only noted.
    void complete(ProcessState& process);
    void list_threads(ProcessState& process);
    // Boot time of a record, rounded down to ticks like the start times in /proc/PID/stat.
    [[nodiscard]] std::uint64_t start_time_of(std::uint64_t record_ns) const;
    // Replaces the known maps, and records older than now, with the current maps in /proc. False if nothing changed, or
    // if the maps cannot be read (process gone, kernel thread, no permission); then the known maps stay.
    bool read_maps(ProcessState& process);
    // Tries to explain an address that is in no known mapping. True if the maps changed.
    bool backfill(ProcessState& process, std::uint64_t address);
    // After lost records: checks whether this is still the same process, with the same program and mappings.
    void refresh(ProcessState& process);
    // The same pid with a new program; `maps_read`: the known maps are already those of the new program.
    ProcessState& begin_exec(ProcessState& old, std::string_view comm, bool maps_read);
    void note_jitdump(ProcessState& process, const std::string& path);
    [[nodiscard]] JitProcess describe_jit(const ProcessState& process) const;
    // Finds processes and threads whose end was missed, once there are many. Call it only between records: it ends
    // processes to which callers may hold references.
    void sweep();
    std::vector<wire::Notice> take_notices() { return std::exchange(notices_, {}); }

private:
    // Adds to the known maps. Records that are yet to come cover the time in between.
    bool add_maps(ProcessState& process);
    bool parse_maps(ProcessState& process, process::AddressSpace& map);
    bool take_map(ProcessState& process, process::AddressSpace map);

    const ProcessTableOptions& options_;
    ProcessRegistry& registry_;
    ModuleCache& modules_;
    JitNames& jit_;
    std::array<process::SharedSpace::Known, 16> read_spaces_;  // the last ones from /proc that matched no other
    std::size_t next_read_space_ = 0;
    std::size_t sweep_at_processes_, sweep_at_threads_;
    bool forbidden_notice_given_ = false;
    std::vector<wire::Notice> notices_;
};

}  // namespace flamewire::agent
