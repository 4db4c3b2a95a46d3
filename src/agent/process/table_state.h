// Inside of ProcessTable, shared by the files that implement it: records (process_records.cc), /proc
// (process_backfill.cc), and questions (process_table.cc).
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
    std::optional<LifecycleEvent> on_task(const TaskRecord& record);
    std::optional<LifecycleEvent> on_comm(const CommRecord& record);
    void on_mmap2(const Mmap2Record& record);
    void on_lost(const LostRecord& record);

    // process_backfill.cc
    // The process of a pid, read from /proc on first sight; one that is gone stays without name and maps.
    ProcessState& ensure_process(std::uint32_t pid, std::uint64_t time_ns);
    void note_living();
    // Reads what was left out of one that is only noted.
    void complete(ProcessState& process);
    // Boot time of a record, rounded down to ticks as /proc/PID/stat gives start times.
    [[nodiscard]] std::uint64_t start_time_of(std::uint64_t record_ns) const;
    ThreadHandle ensure_thread(ProcessState& process, std::uint32_t tid);
    void list_threads(ProcessState& process);
    // False when the maps say nothing (process gone, kernel thread, no permission); then what was known stays.
    // What /proc shows now takes the place of what is known, and of records that are older than now.
    bool read_maps(ProcessState& process);
    // … adds to what is known. Records that are still to come tell of the time in between.
    bool add_maps(ProcessState& process);
    bool parse_maps(ProcessState& process, AddressSpace& map);
    bool take_map(ProcessState& process, AddressSpace map);
    // Tries to explain an address that is in no known mapping. True when the maps changed.
    bool backfill(ProcessState& process, std::uint64_t address);
    // After lost records: is this still the same process, with the same program and mappings?
    void refresh(ProcessState& process);
    // Finds what ended unseen, once there is a lot of everything. Only between records: it ends processes that callers
    // may hold.
    void sweep();

    // process_records.cc and process_backfill.cc
    std::optional<LifecycleEvent> on_fork(const TaskRecord& record);
    std::optional<LifecycleEvent> on_exit(const TaskRecord& record);
    std::optional<LifecycleEvent> on_exec(const CommRecord& record);
    // The same pid with a new program; `maps_read` says that the known maps are the new program's already.
    ProcessState& begin_exec(ProcessState& old, std::string_view comm, bool maps_read);
    ModuleHandle module_of(const MappedFile& mapped);

    // process_table.cc
    void read_kernel_base();
    const Mapping* find_mapping(ProcessState& process, std::uint64_t address);
    // The module that stands for the code which the process made itself.
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

    std::array<SharedSpace::Known, 16> read_spaces;  // the last that were read from /proc and were like no other
    std::size_t next_read_space = 0;

    bool kernel_read = false;
    bool kernel_hidden = false;
    std::uint64_t kernel_text = 0;  // what kernel addresses are counted from; 0: hidden
    std::optional<FunctionPass> kernel_pass;
    ModuleHandle kernel_module = 0;

    std::size_t sweep_at_processes, sweep_at_threads;
};

}  // namespace flamewire::agent
