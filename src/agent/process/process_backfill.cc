#include "agent/process/process_backfill.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <limits>

#include "agent/process/maps.h"
#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "agent/process/process_list.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

constexpr std::uint32_t idle_pid = 0;
// A sample may follow the EXIT record of its own thread by the duration of do_exit, never by this much.
constexpr std::uint64_t exit_tail_ns = 1'000'000'000;
// Tolerance between the start times from a record and from /proc (ticks, and clocks read one after the other).
constexpr std::uint64_t start_tolerance_ns = 100'000'000;
// A path has up to 4,096 bytes, and an escaped newline takes four.
constexpr std::size_t maps_buffer_bytes = 20 * 1024;
constexpr std::size_t max_listed_threads = 65'536;
// Number of unexplained addresses that justifies reading the maps again.
constexpr unsigned unexplained_before_read = 16;
constexpr std::uint64_t first_steps_ns = 1'000'000'000;
// A pid is not reused this soon: all other pids come first.
constexpr std::uint64_t same_owner_ns = 5'000'000;

// Above these counts the table searches for processes and threads whose end it missed.
constexpr std::size_t usual_processes = 8192, usual_threads = 32'768;

bool same_start(std::uint64_t a, std::uint64_t b) { return (a > b ? a - b : b - a) <= start_tolerance_ns; }

}  // namespace

ProcessBackfill::ProcessBackfill(const ProcessTableOptions& options, ProcessRegistry& registry, ModuleCache& modules,
                                 JitNames& jit)
    : options_(options),
      registry_(registry),
      modules_(modules),
      jit_(jit),
      sweep_at_processes_(usual_processes),
      sweep_at_threads_(usual_threads) {}

ProcessState& ProcessBackfill::ensure_process(std::uint32_t pid, std::uint64_t time_ns) {
    ProcessState* known = registry_.by_pid(pid);
    if (known != nullptr && !(known->ended && time_ns > known->ended_ns + exit_tail_ns)) {
        if (known->noted) complete(*known);
        return *known;
    }

    ProcessInfo info;
    info.pid = pid;
    const bool has_entry = pid != idle_pid && pid != perf::exited_task;
    const std::uint64_t now = options_.monotonic_clock();
    const auto stat = has_entry ? read_stat(options_.proc_root, pid) : fail(ErrorCode::not_found, "no entry in /proc");
    const bool alive = stat && stat->state != 'Z' && stat->state != 'X';
    if (stat) {
        if (alive && known != nullptr && same_start(known->info.start_time_ns, ticks_to_ns(stat->start_ticks))) {
            known->ended = false;  // its leader had exited, but other threads live
            if (known->noted) complete(*known);
            return *known;
        }
        info = read_process_info(options_.proc_root, pid, *stat);
    } else {
        info.comm = pid == idle_pid ? "swapper" : pid == perf::exited_task ? "[exited]" : "[unknown]";
        // It began before this time; the value must differ from other owners of the pid.
        if (has_entry) info.start_time_ns = start_time_of(time_ns);
    }
    ProcessState& process = registry_.add_process(std::move(info));
    process.info_read_ns = alive ? now : 0;
    process.barren = !alive;
    return process;
}

void ProcessBackfill::note_living() {
    for (const std::uint32_t pid : list_pids(options_.proc_root)) {
        if (registry_.by_pid(pid) != nullptr) continue;
        const std::uint64_t now = options_.monotonic_clock();
        auto stat = read_stat(options_.proc_root, pid);
        if (!stat) continue;
        ProcessInfo info;
        info.pid = pid;
        info.parent_pid = stat->parent_pid;
        info.start_time_ns = ticks_to_ns(stat->start_ticks);
        info.comm = std::move(stat->comm);
        ProcessState& process = registry_.add_process(std::move(info));
        process.info_read_ns = now;
        process.noted = true;
    }
}

// A process that is gone keeps its name.
void ProcessBackfill::complete(ProcessState& process) {
    process.noted = false;
    const std::uint64_t now = options_.monotonic_clock();
    const auto stat = read_stat(options_.proc_root, process.info.pid);
    process.barren = !stat || stat->state == 'Z' || stat->state == 'X' ||
                     !same_start(ticks_to_ns(stat->start_ticks), process.info.start_time_ns);
    if (process.barren) return;
    process.info = read_process_info(options_.proc_root, process.info.pid, *stat);
    process.info_read_ns = now;
}

ThreadHandle ProcessBackfill::ensure_thread(ProcessState& process, std::uint32_t tid) {
    const ThreadHandle known = registry_.thread_by_tid(tid);
    if (known != 0 && registry_.thread(known)->info.process == process.handle) return known;
    registry_.end_thread(known);  // it belongs to another process: its end was missed
    std::string comm;
    std::uint64_t read_ns = process.info_read_ns;
    if (tid != process.info.pid && read_ns != 0) {
        read_ns = options_.monotonic_clock();
        comm = read_thread_comm(options_.proc_root, process.info.pid, tid);
        if (comm.empty()) read_ns = 0;  // gone
    }
    const ThreadHandle handle = registry_.add_thread(process, tid, comm);
    registry_.thread(handle)->read_ns = read_ns;
    if (process.ended) registry_.end_thread(handle);
    return handle;
}

void ProcessBackfill::list_threads(ProcessState& process) {
    const std::string folder = proc_path(options_.proc_root, process.info.pid, "task");
    for (const std::uint32_t tid : list_numbers(folder, max_listed_threads)) ensure_thread(process, tid);
}

std::uint64_t ProcessBackfill::start_time_of(std::uint64_t record_ns) const {
    const std::uint64_t tick_ns = ticks_to_ns(1);
    return (record_ns + (options_.boot_clock() - options_.monotonic_clock())) / tick_ns * tick_ns;
}

// False if the maps could not be read completely.
bool ProcessBackfill::parse_maps(ProcessState& process, process::AddressSpace& map) {
    auto lines = LineReader::open(proc_path(options_.proc_root, process.info.pid, "maps"), maps_buffer_bytes);
    std::size_t count = 0;
    std::string_view line;
    while (lines && lines->next(line)) {
        auto entry = parse_maps_line(line);
        if (!entry) continue;
        ++count;
        if (!entry->executable) continue;
        if (is_jitdump_name(entry->path)) note_jitdump(process, entry->path);
        process::Mapping mapping{entry->start, entry->end, entry->file_offset, 0};
        // Most mappings are known already: this avoids inspecting the file again.
        const process::Mapping* known = process.suspect ? nullptr : process.space.find(entry->start);
        if (known != nullptr && known->start == entry->start && known->end == entry->end && known->module != 0 &&
            modules_.info(known->module).path == entry->path &&
            (known->file_offset == entry->file_offset || entry->path == "[vdso]"))
            mapping.module = known->module;
        else
            mapping.module = modules_.of_mapping({process.info.pid,
                                                  process.info.parent_pid,
                                                  entry->start,
                                                  entry->end,
                                                  std::move(entry->path),
                                                  entry->deleted,
                                                  {},
                                                  makedev(entry->device_major, entry->device_minor),
                                                  entry->inode});
        if (modules_.info(mapping.module).kind == wire::ModuleKind::vdso) mapping.file_offset = 0;
        map.insert(mapping);
    }
    const int error = !lines ? lines.error().errno_value : lines->errno_value();
    if (error == EACCES || error == EPERM) {
        process.maps_forbidden = true;
        if (!std::exchange(forbidden_notice_given_, true))
            notices_.push_back(
                {"maps-unreadable",
                 fmt::format("The memory map of process {} ({}) cannot be read: its frames have no names",
                             process.info.pid, process.info.comm),
                 "run flamewire-agent as the same user or as root, or setcap cap_perfmon,cap_sys_ptrace+ep "
                 "flamewire-agent"});
    }
    // An exiting process shows no mapping; a failed read shows only some.
    return count != 0 && error == 0;
}

// For servers that forked their workers before the recording: cached data about one worker's stacks applies to all.
bool ProcessBackfill::take_map(ProcessState& process, process::AddressSpace map) {
    if (map == process.space.map()) return false;
    for (const process::SharedSpace::Known& known : read_spaces_)
        if (process.space.share(known, map)) return true;
    (void)process.space.replace(std::move(map));
    read_spaces_[next_read_space_++ % read_spaces_.size()] = process.space.known();
    return true;
}

bool ProcessBackfill::read_maps(ProcessState& process) {
    const std::uint64_t started = options_.monotonic_clock();
    process::AddressSpace map;
    if (!parse_maps(process, map)) return false;
    const bool changed = take_map(process, std::move(map));
    process.maps_known = true;
    process.maps_read_ns = started;
    process.suspect = false;
    return changed;
}

bool ProcessBackfill::add_maps(ProcessState& process) {
    if (!process.maps_known) return read_maps(process);
    process::AddressSpace map;
    return parse_maps(process, map) && process.space.fill(map);
}

bool ProcessBackfill::backfill(ProcessState& process, std::uint64_t address) {
    // No mapping includes the first page or the kernel's half.
    if (address < 4096 || address >> 63 != 0) return false;
    if (process.ended || process.barren || process.maps_forbidden) return false;
    // Once the maps are known, records report all new mappings. Unexplained addresses are garbage from code without
    // frame pointers, or were moved (mremap), which no record reports. A program that has just started has moved
    // nothing.
    if (process.maps_known && ++process.unexplained < unexplained_before_read) return false;
    const std::uint64_t now = options_.monotonic_clock();
    if (process.maps_known && now < process.exec_ns + first_steps_ns) return false;
    if (!process.budget.take(now)) {
        process.retry_ns = process.budget.next_ns();
        return false;
    }
    bool same = now < process.info_read_ns + same_owner_ns;
    if (!same) {
        const auto stat = read_stat(options_.proc_root, process.info.pid);
        same = stat && same_start(ticks_to_ns(stat->start_ticks), process.info.start_time_ns);
    }
    const bool changed = same && add_maps(process);
    process.barren = process.space.find(address) == nullptr;
    if (process.barren)
        process.budget.found_nothing();
    else
        process.budget.found_something();
    return changed;
}

ProcessState& ProcessBackfill::begin_exec(ProcessState& old, std::string_view comm, bool maps_read) {
    ProcessInfo info = old.info;
    ++info.exec_generation;
    info.comm = std::string(comm);
    info.exe.clear();
    info.command_line = read_command_line(options_.proc_root, info.pid);
    if (info.command_line.empty()) info.command_line = info.comm;
    // Between fork and exec, a container runtime moves its child to another namespace and cgroup, and a service manager
    // moves it to another cgroup.
    if (const ProcStatus status = read_status(options_.proc_root, info.pid); status.namespace_pid != 0)
        info.ns_pid = status.namespace_pid;
    if (Cgroup cgroup = read_cgroup(options_.proc_root, info.pid); !cgroup.path.empty()) {
        info.cgroup = std::move(cgroup.path);
        info.container_id = std::move(cgroup.container_id);
    }
    registry_.end_process(old);
    ProcessState& process = registry_.add_process(std::move(info));
    process.before_exec = old.space;
    process.exec_ns = old.ended_ns;
    process.maps_known = true;  // empty now; a record reports every mapping from here on
    if (maps_read) {
        process.space = old.space;
        process.maps_read_ns = old.maps_read_ns;
        process.info.exe = read_exe(options_.proc_root, process.info.pid);
    }
    process.exe_pending = process.info.exe.empty();
    return process;
}

JitProcess ProcessBackfill::describe_jit(const ProcessState& process) const {
    return {process.jit_module, process.info.pid,           process.info.ns_pid, process.info.comm,
            process.jitdump,    process.info.start_time_ns, process.info.exe};
}

void ProcessBackfill::note_jitdump(ProcessState& process, const std::string& path) {
    if (process.jitdump == path) return;
    process.jitdump = path;
    if (process.jit_module != 0) jit_.found_jitdump(describe_jit(process));
}

void ProcessBackfill::refresh(ProcessState& process) {
    if (process.ended || !process.budget.take(options_.monotonic_clock())) return;
    process.suspect = false;
    process.barren = false;
    const std::uint64_t now = options_.monotonic_clock();
    const auto stat = read_stat(options_.proc_root, process.info.pid);
    if (!stat) return;  // gone: there is nothing more to learn
    if (!same_start(ticks_to_ns(stat->start_ticks), process.info.start_time_ns)) {
        process.ended_ns = 0;  // long ago: ensure_process reads it again
        registry_.end_process(process);
        return;
    }
    const std::string exe = read_exe(options_.proc_root, process.info.pid);
    if (!exe.empty() && !process.info.exe.empty() && exe != process.info.exe) {
        ProcessState& next = begin_exec(process, stat->comm, false);
        next.info.exe = exe;
        next.exe_pending = false;
        next.info_read_ns = now;
        next.suspect = true;  // disables the shortcut through the old map
        read_maps(next);
        next.suspect = false;
        return;
    }
    if (process.info.exe.empty()) process.info.exe = exe;
    process.suspect = true;
    read_maps(process);
    process.suspect = false;
}

void ProcessBackfill::sweep() {
    constexpr std::size_t growth = 2;
    if (registry_.process_count() <= sweep_at_processes_ && registry_.thread_count() <= sweep_at_threads_) return;
    for (const ProcessHandle handle : registry_.live()) {
        ProcessState* process = registry_.by_handle(handle);
        const std::uint32_t pid = process->info.pid;
        if (pid == idle_pid || pid == perf::exited_task) continue;
        if (!file_status(proc_path(options_.proc_root, pid, "stat"))) {
            process->ended_ns = options_.monotonic_clock();
            registry_.end_process(*process);
            continue;
        }
        for (const ThreadHandle thread : std::vector<ThreadHandle>(process->threads)) {
            const std::string task = "task/" + std::to_string(registry_.thread(thread)->info.tid);
            if (!file_status(proc_path(options_.proc_root, pid, task))) registry_.end_thread(thread);
        }
    }
    sweep_at_processes_ = std::max(sweep_at_processes_, registry_.process_count() * growth);
    sweep_at_threads_ = std::max(sweep_at_threads_, registry_.thread_count() * growth);
}

}  // namespace flamewire::agent
