// Applies records in time order to processes, threads and address spaces. /proc may be ahead of the records: data read
// from it at time T is not undone by a record older than T.
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "agent/process/maps.h"
#include "agent/process/process_info.h"
#include "agent/process/table_state.h"
#include "process/mapping_name.h"

namespace flamewire::agent {

std::optional<ProcessTable::LifecycleEvent> ProcessTable::State::on_fork(const TaskRecord& record) {
    const auto born = [&](ThreadHandle thread) {
        return LifecycleEvent{wire::LifecycleKind::fork, record.time_ns, thread};
    };
    if (ProcessState* known = registry.by_pid(record.pid); known != nullptr && record.pid != record.parent_pid) {
        if (known->info_read_ns > record.time_ns) {  // found in /proc after its birth, before this record was read
            if (known->noted) complete(*known);
            known->info.parent_pid = record.parent_pid;
            return born(ensure_thread(*known, record.tid));
        }
        known->ended_ns = record.time_ns;
        registry.end_process(*known);  // its end was missed: the pid has a new owner
    }
    ProcessState& parent = ensure_process(record.parent_pid, record.time_ns);
    const ThreadHandle parent_thread = ensure_thread(parent, record.parent_tid);
    const std::string comm = registry.thread(parent_thread)->info.comm;
    if (record.pid == record.parent_pid) {
        const ThreadHandle known = registry.thread_by_tid(record.tid);
        if (known != 0 && registry.thread(known)->info.process == parent.handle &&
            registry.thread(known)->read_ns > record.time_ns)
            return born(known);
        registry.end_thread(known);  // its end was missed: the tid has a new owner
        return born(registry.add_thread(parent, record.tid, comm));
    }
    if (!parent.maps_known && !parent.maps_forbidden && !parent.barren) read_maps(parent);

    ProcessInfo info = parent.info;
    info.pid = record.pid;
    info.parent_pid = record.parent_pid;
    info.start_time_ns = start_time_of(record.time_ns);
    info.exec_generation = 0;
    info.comm = comm;
    // Only a process in a pid namespace has another number there, and only /proc contains it.
    if (parent.info.ns_pid != 0) info.ns_pid = read_status(options.proc_root, record.pid).namespace_pid;
    ProcessState& child = registry.add_process(std::move(info));
    child.space = parent.space;
    child.maps_known = parent.maps_known;
    child.suspect = parent.suspect;
    child.maps_forbidden = parent.maps_forbidden;
    child.exe_pending = parent.exe_pending;
    child.jitdump = parent.jitdump;
    if (parent.jit_module != 0) child.space.forget_answers();  // they name the parent's code
    return born(registry.add_thread(child, record.tid, comm));
}

std::optional<ProcessTable::LifecycleEvent> ProcessTable::State::on_exit(const TaskRecord& record) {
    ProcessState* process = registry.by_pid(record.pid);
    if (process == nullptr || process->ended) return std::nullopt;
    if (process->noted) {  // never sampled: no event is reported
        if (record.tid != record.pid || process->info_read_ns > record.time_ns) return std::nullopt;
        process->ended_ns = record.time_ns;
        registry.end_process(*process);
        return std::nullopt;
    }
    const ThreadHandle known = registry.thread_by_tid(record.tid);
    const ThreadState* state = registry.thread(known);
    const bool ours = state != nullptr && state->info.process == process->handle;
    // The end of a former owner of the number, or of a thread that had ended before /proc was read.
    if ((ours ? state->read_ns : process->info_read_ns) > record.time_ns) return std::nullopt;
    const ThreadHandle thread = ours ? known : ensure_thread(*process, record.tid);
    registry.end_thread(thread);
    // Threads that were never seen may live on, but seldom after the leader has exited. If they do, ensure_process
    // finds them again.
    const ThreadState* leader = registry.thread(registry.thread_by_tid(record.pid));
    if (process->threads.empty() && leader != nullptr && leader->ended && leader->info.process == process->handle) {
        process->ended_ns = record.time_ns;
        registry.end_process(*process);
    }
    return LifecycleEvent{wire::LifecycleKind::exit, record.time_ns, thread};
}

ProcessState& ProcessTable::State::begin_exec(ProcessState& old, std::string_view comm, bool maps_read) {
    ProcessInfo info = old.info;
    ++info.exec_generation;
    info.comm = std::string(comm);
    info.exe.clear();
    info.command_line = read_command_line(options.proc_root, info.pid);
    if (info.command_line.empty()) info.command_line = info.comm;
    // Between fork and exec, a container runtime moves its child to another namespace and cgroup, and a service manager
    // moves it to another cgroup.
    if (const ProcStatus status = read_status(options.proc_root, info.pid); status.namespace_pid != 0)
        info.ns_pid = status.namespace_pid;
    if (Cgroup cgroup = read_cgroup(options.proc_root, info.pid); !cgroup.path.empty()) {
        info.cgroup = std::move(cgroup.path);
        info.container_id = std::move(cgroup.container_id);
    }
    registry.end_process(old);
    ProcessState& process = registry.add_process(std::move(info));
    process.before_exec = old.space;
    process.exec_ns = old.ended_ns;
    process.maps_known = true;  // empty now; a record reports every mapping from here on
    if (maps_read) {
        process.space = old.space;
        process.maps_read_ns = old.maps_read_ns;
        process.info.exe = read_exe(options.proc_root, process.info.pid);
    }
    process.exe_pending = process.info.exe.empty();
    return process;
}

std::optional<ProcessTable::LifecycleEvent> ProcessTable::State::on_exec(const CommRecord& record) {
    const auto event = [&](ThreadHandle thread) {
        return LifecycleEvent{wire::LifecycleKind::exec, record.time_ns, thread};
    };
    ProcessState& old = ensure_process(record.pid, record.time_ns);
    // /proc already showed the new program, but not necessarily its maps. They start empty here, and a record reports
    // every mapping from now on, as for a program that the agent starts. Mappings in /proc now may be newer than this
    // record.
    if (old.info_read_ns > record.time_ns) {
        if (old.maps_read_ns <= record.time_ns) {
            (void)old.space.replace({});
            old.maps_known = true;
            old.exec_ns = record.time_ns;
        }
        return event(ensure_thread(old, record.tid));
    }
    old.ended_ns = record.time_ns;
    ProcessState& process = begin_exec(old, record.comm, old.maps_read_ns > record.time_ns);
    return event(registry.add_thread(process, record.tid, record.comm));
}

std::optional<ProcessTable::LifecycleEvent> ProcessTable::State::on_comm(const CommRecord& record) {
    if (record.exec) return on_exec(record);
    ProcessState& process = ensure_process(record.pid, record.time_ns);
    const ThreadHandle handle = ensure_thread(process, record.tid);
    ThreadState* thread = registry.thread(handle);
    if (thread == nullptr || thread->read_ns > record.time_ns || thread->info.comm == record.comm) return std::nullopt;
    thread->info.comm = std::string(record.comm);
    if (record.tid == record.pid) process.info.comm = thread->info.comm;
    return LifecycleEvent{wire::LifecycleKind::comm, record.time_ns, handle};
}

ModuleHandle ProcessTable::State::module_of(const MappedFile& mapped) {
    switch (process::classify_mapping(mapped.path)) {
        case process::MappingName::file:
            return modules.of_file(mapped);
        case process::MappingName::vdso:
            return modules.of_vdso(mapped.pid, mapped.start, mapped.end);
        case process::MappingName::anonymous:
            break;
    }
    return 0;
}

void ProcessTable::State::on_mmap2(const MmapRecord& record) {
    if (record.length == 0 || record.start + record.length < record.start) return;
    ProcessState& process = ensure_process(record.pid, record.time_ns);
    if (process.ended || record.time_ns < process.maps_read_ns) return;
    const std::uint64_t end = record.start + record.length;
    process.barren = false;
    if ((record.protection & PROT_EXEC) == 0) {
        process.space.erase(record.start, end);
        return;
    }
    MappedFile mapped;
    mapped.pid = record.pid;
    mapped.parent_pid = process.info.parent_pid;
    mapped.start = record.start;
    mapped.end = end;
    mapped.path = std::string(record.path);
    mapped.deleted = strip_deleted(mapped.path);
    mapped.build_id = std::string(as_text(record.build_id));
    if (record.build_id.empty()) {
        mapped.device = makedev(record.device_major, record.device_minor);
        mapped.inode = record.inode;
    }
    if (is_jitdump_name(mapped.path)) note_jitdump(process, mapped.path);
    const ModuleHandle module = module_of(mapped);
    const bool is_vdso = modules.info(module).kind == wire::ModuleKind::vdso;
    process.space.insert({record.start, end, is_vdso ? 0 : record.page_offset, module});
    // The kernel maps the program itself before its loader.
    if (process.exe_pending && module != 0 && !is_vdso) {
        process.info.exe = mapped.path;
        process.exe_pending = false;
    }
}

void ProcessTable::State::on_lost(const LostRecord& record) {
    if (!record.sideband) return;
    registry.mark_all_suspect();
    wire::Loss loss;
    loss.reason = wire::LossReason::maps_lost;
    loss.count = record.count;
    loss.first_ns = loss.last_ns = record.time_ns;
    loss.cpu_plus_1 = record.cpu + 1;
    losses.push_back(loss);
}

}  // namespace flamewire::agent
