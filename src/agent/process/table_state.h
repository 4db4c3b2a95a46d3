// The internals of ProcessTable, shared by its implementation files: records (process_records.cc), /proc
// (process_backfill.cc), and queries (process_table.cc).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/code_cache.h"
#include "agent/process/jit_names.h"
#include "agent/process/kallsyms.h"
#include "agent/process/module_cache.h"
#include "agent/process/process_registry.h"
#include "agent/process/process_table.h"

namespace flamewire::agent {

struct ProcessTable::State {
    explicit State(ProcessTableOptions options);

    // process_records.cc
    std::optional<LifecycleEvent> on_comm(const CommRecord& record);
    void on_mmap2(const MmapRecord& record);
    void on_lost(const LostRecord& record);

    // process_backfill.cc
    // The process with this pid, read from /proc at first sight. If it is gone, it has no name and no maps.
    ProcessState& ensure_process(std::uint32_t pid, std::uint64_t time_ns);
    void note_living();
    // Reads the rest of a process that is only noted.
    void complete(ProcessState& process);
    // Boot time of a record, rounded down to ticks like the start times in /proc/PID/stat.
    [[nodiscard]] std::uint64_t start_time_of(std::uint64_t record_ns) const;
    ThreadHandle ensure_thread(ProcessState& process, std::uint32_t tid);
    void list_threads(ProcessState& process);
    // Replaces the known maps, and records older than now, with the current maps in /proc. False if nothing changed, or
    // if the maps cannot be read (process gone, kernel thread, no permission); then the known maps stay.
    bool read_maps(ProcessState& process);
    // Adds to the known maps. Records that are yet to come cover the time in between.
    bool add_maps(ProcessState& process);
    bool parse_maps(ProcessState& process, process::AddressSpace& map);
    bool take_map(ProcessState& process, process::AddressSpace map);
    // Tries to explain an address that is in no known mapping. True if the maps changed.
    bool backfill(ProcessState& process, std::uint64_t address);
    // After lost records: checks whether this is still the same process, with the same program and mappings.
    void refresh(ProcessState& process);
    // Finds processes and threads whose end was missed, once there are many. Call it only between records: it ends
    // processes to which callers may hold references.
    void sweep();

    // process_records.cc and process_backfill.cc
    std::optional<LifecycleEvent> on_fork(const TaskRecord& record);
    std::optional<LifecycleEvent> on_exit(const TaskRecord& record);
    std::optional<LifecycleEvent> on_exec(const CommRecord& record);
    // The same pid with a new program; `maps_read`: the known maps are already those of the new program.
    ProcessState& begin_exec(ProcessState& old, std::string_view comm, bool maps_read);
    ModuleHandle module_of(const MappedFile& mapped);

    // process_table.cc
    void read_kernel_base();
    const process::Mapping* find_mapping(ProcessState& process, std::uint64_t address);
    // The module for the code that the process generated.
    ModuleHandle jit_module_of(ProcessState& process);
    void note_jitdump(ProcessState& process, const std::string& path);
    [[nodiscard]] JitProcess describe_jit(const ProcessState& process) const;
    void apply_jit_names(std::uint64_t time_ns);

    ProcessTableOptions options;
    ProcessRegistry registry;
    ModuleCache modules;
    JitNames jit;
    CodeCache code_cache;
    std::uint64_t next_jit_sweep_ns = 0;

    std::uint64_t last_sample_ns = 0;
    std::vector<wire::Loss> losses;
    std::vector<wire::Notice> notices;
    bool forbidden_notice_given = false;

    std::array<process::SharedSpace::Known, 16> read_spaces;  // the last ones from /proc that matched no other
    std::size_t next_read_space = 0;

    bool kernel_read = false;
    bool kernel_hidden = false;
    std::uint64_t kernel_text = 0;  // the base of kernel addresses; 0: hidden
    std::optional<FunctionPass> kernel_pass;
    ModuleHandle kernel_module = 0;

    std::size_t sweep_at_processes, sweep_at_threads;
};

}  // namespace flamewire::agent
