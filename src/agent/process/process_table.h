// Who is who on the target: processes (pid, start time, exec generation), threads, address spaces, modules. Fed by
// records in time order, backfilled from /proc lazily and rate-limited. Answers (pid, ip) -> module and ELF address for
// the folder. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/record.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "elf/elf_file.h"
#include "unwind/tables/code_map.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Handles into the table, never reused. 0 is none. Processes and threads that ended are remembered for a while (the
// last 1,024 and 8,192 of them); after that their handle stands for an empty record. Modules are never forgotten.
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

// What a batch told of a module file, for finding it again. Without a build-id all of the rest must be equal.
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
    ModuleHandle module = 0;    // 0: in no known mapping, address is the raw one
    std::uint64_t address = 0;  // ELF virtual address; kernel: relative to _text
    bool jit = false;           // of no file, but executable: code that the process made itself, address is the raw one
};

// A function of such code.
struct JitFunction {
    std::string_view name, file;  // file and line: of the address; empty and 0: not known
    std::uint32_t line = 0;
};

// A name that exists only here: function of the kernel or the vDSO, or of JIT code.
struct TargetSymbol {
    ModuleHandle module = 0;
    std::uint64_t address = 0, size = 0;
    std::string name;
};

struct ProcessTableOptions {
    std::string proc_root = "/proc";  // tests give a fake tree
    std::string sys_root = "/sys";
    // Clock of the records, and time since boot, in which /proc says when a process began.
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

    // Reads /proc of a target: identity, maps, threads. Call it once its events are open, so that no mapping falls
    // between. A process that is gone leaves no trace.
    void attach(std::uint32_t pid);

    // Names of all that runs, for a recording of them all: who ends before its first sample is looked at has one, too.
    // One file a process; the rest is read with its first sample. Call it once the events are open.
    void note_living();

    // Its records were not seen for a while: who lives is compared with /proc before the next sample, without a loss.
    void distrust_all();

    // Everything but samples, in time order. Returns the lifecycle event that it meant, if any.
    struct LifecycleEvent {
        wire::LifecycleKind kind;
        std::uint64_t time_ns;
        ThreadHandle thread;
    };
    std::optional<LifecycleEvent> on_record(const Record& record);

    // The thread of a sample, made on first sight. Also where a process whose records were lost is read anew.
    ThreadHandle thread_of(std::uint32_t pid, std::uint32_t tid, std::uint64_t time_ns);
    // The same for what is not a sample: also a thread that has just ended, and nothing is looked up; 0: not known.
    [[nodiscard]] ThreadHandle newest_thread(std::uint32_t pid, std::uint32_t tid) const;
    // The newest process of a pid that is known; 0: none.
    [[nodiscard]] ProcessHandle newest(std::uint32_t pid) const;
    // Names the content of an address space: changes whenever answers of resolve() for this process may have changed,
    // and is equal only for processes whose answers are equal (a fork that changed nothing yet). All that a cache key
    // needs besides addresses.
    [[nodiscard]] std::uint64_t generation(ProcessHandle process) const;
    // False: its mappings could not be learned, so user addresses mean nothing.
    [[nodiscard]] bool maps_known(ProcessHandle process) const;
    // May read /proc/PID/maps, and then change the generation.
    ResolvedAddress resolve(ProcessHandle process, std::uint64_t user_address);
    ResolvedAddress resolve_kernel(std::uint64_t address);

    // The function of JIT code (`module` and `address` as resolve() gave them; of a return address, one less) at the time
    // of the last thread_of(). Nothing: nobody has said so yet; take_jit_symbols() may name the bare address later.
    // Valid until the next call of anything here.
    std::optional<JitFunction> jit_function(ModuleHandle module, std::uint64_t address);
    // A sample with an address in JIT code whose function was not known. Many of them without a file that names such
    // code are worth a notice.
    void saw_unnamed_jit(ProcessHandle process);
    // Once a round, before samples are read: asks about what was sampled, and hears what was found out. Only samples
    // until the returned time should be read now: code that ran later may have another name than is known.
    [[nodiscard]] std::uint64_t exchange_jit_names();
    // The same, at the end: waits for answers, but no longer than `patience_ns`.
    void settle_jit_names(std::uint64_t patience_ns);
    std::vector<TargetSymbol> take_jit_symbols();

    // The code around a user address, for unwinding; nothing when it is in no known mapping. May read /proc/PID/maps,
    // and then change the generation.
    std::optional<unwind::CodePiece> code_at(ProcessHandle process, std::uint64_t user_address);
    // The rule for code without a file: what its program wrote for it, or that of a trampoline, recognized by its bytes
    // in the process's memory; see unwind::CodeMap::rule_at.
    std::optional<unwind::Rule> code_rule(ProcessHandle process, const unwind::CodePiece& piece, unwind::Arch arch,
                                          std::uint64_t pc, bool return_address);
    // The file of a module, open since it was first seen (ProcessTableOptions::keep_files). Reads go on when it is
    // deleted or replaced, and fail when it was changed in place.
    Result<elf::ByteSource> open_file(ModuleHandle module);
    // Another descriptor of the file of a module that was seen, and of nothing else. not_found: none is known, or its
    // file was not kept; closed: it was changed in place.
    Result<UniqueFd> duplicate_file(const FileIdentity& identity);

    [[nodiscard]] const ThreadInfo& thread(ThreadHandle handle) const;
    [[nodiscard]] const ProcessInfo& process(ProcessHandle handle) const;
    [[nodiscard]] const ModuleInfo& module(ModuleHandle handle) const;

    // Lost process and map records since the last call. (Lost samples are the caller's to count: it knows the events.)
    std::vector<wire::Loss> take_losses();
    std::vector<wire::Notice> take_notices();

    // Names for kernel addresses (as resolve_kernel() gives them) by one pass over kallsyms without keeping it: 40 to 60
    // ms, on a board a second or two. So it is done in pieces: begun once, then advanced until it is over, when what was
    // found is given. Nothing begins, and nothing is found, when names are hidden.
    void begin_kernel_symbols(std::vector<std::uint64_t> addresses);
    [[nodiscard]] bool kernel_symbols_begun() const;  // and not over
    std::vector<TargetSymbol> advance_kernel_symbols(std::uint64_t deadline_ns);
    // The vDSO's whole symbol table.
    std::vector<TargetSymbol> vdso_symbols(ModuleHandle vdso);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::agent
