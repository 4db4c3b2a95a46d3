// Processes (pid, start time, exec generation), threads, address spaces and modules of the target. Fed by records in
// time order, and completed from /proc lazily and rate-limited. Resolves (pid, ip) to a module and an ELF address. Not
// thread-safe. It has many functions because it is the only way from the sampler to the parts of this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/record.h"
#include "base/clock.h"
#include "base/code_address.h"
#include "base/fd.h"
#include "base/result.h"
#include "elf/elf_file.h"
#include "unwind/tables/code_map.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Handles into the table, never reused. 0 means none. Ended processes and threads are kept for a while (the last 1,024
// and 8,192 of them); after that their handle refers to an empty record. Modules are never removed.
using ProcessHandle = std::uint32_t;
using ThreadHandle = std::uint32_t;
using ModuleHandle = std::uint32_t;

struct ModuleInfo {
    wire::ModuleKind kind = wire::ModuleKind::file;
    std::string path;      // as the target sees it
    std::string build_id;  // raw
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t mtime_ns = 0;
};

// Identity of a module file from a batch, for finding it again. Without a build-id all other fields must be equal.
struct FileIdentity {
    std::string build_id;  // raw
    std::string path;
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
    bool operator==(const FileIdentity&) const = default;
};

struct ProcessInfo {
    std::uint32_t pid = 0, ns_pid = 0, parent_pid = 0;
    std::uint64_t start_time_ns = 0;
    std::uint32_t exec_generation = 0;
    std::string comm, exe, command_line, cgroup, container_id;
};

struct ThreadInfo {
    ProcessHandle process = 0;
    std::uint32_t tid = 0;
    std::string comm;
};

struct ResolvedAddress {
    ModuleHandle module = 0;    // 0: no known mapping, so the address is the raw one
    std::uint64_t address = 0;  // ELF virtual address; kernel: relative to KernelBase
    bool jit = false;           // executable memory without a file: JIT code, so the address is the raw one
};

// A function of JIT code.
struct JitFunction {
    std::string_view name, file;  // file and line of the address; empty and 0: unknown
    std::uint32_t line = 0;
};

// A name that is available only on the target: a function of the kernel, of the vDSO, or of JIT code.
struct TargetSymbol {
    ModuleHandle module = 0;
    std::uint64_t address = 0, size = 0;
    std::string name;
};

struct ProcessTableOptions {
    std::string proc_root = "/proc";  // tests provide a fake tree
    std::string sys_root = "/sys";
    // Clock of the records, and time since boot, which /proc uses for process start times.
    std::uint64_t (*monotonic_clock)() = monotonic_ns;
    std::uint64_t (*boot_clock)() = boottime_ns;
    bool keep_files = false;  // for open_file
};

class ProcessTable {
public:
    explicit ProcessTable(ProcessTableOptions options = {});
    ~ProcessTable();
    ProcessTable(const ProcessTable&) = delete;
    ProcessTable& operator=(const ProcessTable&) = delete;

    // Reads a target from /proc: identity, maps, threads. Call it after opening its events, so that no mapping is
    // missed. Does nothing if the process is gone.
    void attach(std::uint32_t pid);

    // Records the names of all running processes, for a recording of the whole system: even a process that exits before
    // its first sample is processed then has a name. Reads one file per process; the rest follows with the first
    // sample. Call it after opening the events.
    void note_living();

    // Records were not read for a while: compares live processes with /proc before the next sample, without reporting a
    // loss.
    void distrust_all();

    // Handle the records in time order. Return the resulting lifecycle event, if any.
    struct LifecycleEvent {
        wire::LifecycleKind kind;
        std::uint64_t time_ns;
        ThreadHandle thread;
    };
    std::optional<LifecycleEvent> on_record(const TaskRecord& record);
    std::optional<LifecycleEvent> on_record(const CommRecord& record);
    void on_record(const MmapRecord& record);
    void on_record(const LostRecord& record);

    // The thread of a sample, created at first sight. Also re-reads a process whose records were lost.
    ThreadHandle thread_of(std::uint32_t pid, std::uint32_t tid, std::uint64_t time_ns);
    // The same for other uses: includes a thread that has just ended, and reads nothing; 0: unknown.
    [[nodiscard]] ThreadHandle newest_thread(std::uint32_t pid, std::uint32_t tid) const;
    // The newest known process with this pid; 0: none.
    [[nodiscard]] ProcessHandle newest(std::uint32_t pid) const;
    // Identifies the content of an address space. Changes whenever results of resolve() for this process may have
    // changed, and is equal only for processes with equal results (for example after a fork, until a side changes). A
    // cache key needs only this and an address.
    [[nodiscard]] std::uint64_t generation(ProcessHandle process) const;
    // False: its mappings could not be read, so user addresses cannot be resolved.
    [[nodiscard]] bool maps_known(ProcessHandle process) const;
    // May read /proc/PID/maps, and then change the generation.
    ResolvedAddress resolve(ProcessHandle process, std::uint64_t user_address);
    ResolvedAddress resolve_kernel(std::uint64_t address);

    // The function of JIT code at the time of the last thread_of(). `module` and `address` are from resolve(); for a
    // return address, pass one less. Nothing: not described yet; take_jit_symbols() may name the bare address later.
    // Valid until the next call of any function of this class.
    std::optional<JitFunction> jit_function(ModuleHandle module, std::uint64_t address);
    // Reports a sample with an address in JIT code whose function is unknown. Many of these, without a file that names
    // such code, cause a notice.
    void saw_unnamed_jit(ProcessHandle process);
    // Call it once per round, before samples are read: sends questions about sampled addresses and receives answers.
    // Read only samples until the returned time now: code that ran later may have another name than the known one.
    [[nodiscard]] std::uint64_t exchange_jit_names();
    // The same at the end of a recording: waits for answers, for at most `patience_ns`.
    void settle_jit_names(std::uint64_t patience_ns);
    std::vector<TargetSymbol> take_jit_symbols();

    // The code around a user address, for unwinding; nothing if it is in no known mapping. May read /proc/PID/maps, and
    // then change the generation.
    std::optional<unwind::CodePiece> code_at(ProcessHandle process, std::uint64_t user_address);
    // The unwind rule for code without a file: the one that its program wrote, or that of a trampoline, recognized by
    // its bytes in the process's memory. See unwind::CodeMap::rule_at.
    std::optional<unwind::Rule> code_rule(ProcessHandle process, const unwind::CodePiece& piece, unwind::Arch arch,
                                          CodeAddress pc);
    // The file of a module, open since it was first seen (ProcessTableOptions::keep_files). Reads continue after it is
    // deleted or replaced, and fail after it was changed in place.
    Result<elf::ByteSource> open_file(ModuleHandle module);
    // Another descriptor of the file of a known module; no other files. not_found: no such module, or its file was not
    // kept; closed: it was changed in place.
    Result<UniqueFd> duplicate_file(const FileIdentity& identity);

    [[nodiscard]] const ThreadInfo& thread(ThreadHandle handle) const;
    [[nodiscard]] const ProcessInfo& process(ProcessHandle handle) const;
    [[nodiscard]] const ModuleInfo& module(ModuleHandle handle) const;

    // Lost process and map records since the last call. (The caller counts lost samples, because it has the events.)
    std::vector<wire::Loss> take_losses();
    std::vector<wire::Notice> take_notices();

    // Names for kernel addresses (as from resolve_kernel()) in one pass over kallsyms, which takes 40 to 60 ms, or one
    // to two seconds on a board. So it runs in pieces: begin it once, then advance it until it is over and returns the
    // symbols. If names are hidden, it does not begin, and finds nothing.
    void begin_kernel_symbols(std::vector<std::uint64_t> addresses);
    [[nodiscard]] bool kernel_symbols_begun() const;  // and not over
    std::vector<TargetSymbol> advance_kernel_symbols(std::uint64_t deadline_ns);
    // The complete symbol table of the vDSO.
    std::vector<TargetSymbol> vdso_symbols(ModuleHandle vdso);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::agent
