#include "agent/process/process_records.h"

#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "agent/process/maps.h"
#include "agent/process/process_info.h"

namespace flamewire::agent {

std::optional<ProcessRecords::LifecycleEvent> ProcessRecords::on_fork(const TaskRecord& record) {
    const auto born = [&](ThreadHandle thread) {
        return LifecycleEvent{wire::LifecycleKind::fork, record.time_ns, thread};
    };
    if (ProcessState* known = registry_.by_pid(record.pid); known != nullptr && record.pid != record.parent_pid) {
        if (known->info_read_ns > record.time_ns) {  // found in /proc after its birth, before this record was read
            if (known->noted) backfill_.complete(*known);
            known->info.parent_pid = record.parent_pid;
            return born(backfill_.ensure_thread(*known, record.tid));
        }
        known->ended_ns = record.time_ns;
        registry_.end_process(*known);  // its end was missed: the pid has a new owner
    }
    ProcessState& parent = backfill_.ensure_process(record.parent_pid, record.time_ns);
    const ThreadHandle parent_thread = backfill_.ensure_thread(parent, record.parent_tid);
    const std::string comm = registry_.thread(parent_thread)->info.comm;
    if (record.pid == record.parent_pid) {
        const ThreadHandle known = registry_.thread_by_tid(record.tid);
        if (known != 0 && registry_.thread(known)->info.process == parent.handle &&
            registry_.thread(known)->read_ns > record.time_ns)
            return born(known);
        registry_.end_thread(known);  // its end was missed: the tid has a new owner
        return born(registry_.add_thread(parent, record.tid, comm));
    }
    if (!parent.maps_known && !parent.maps_forbidden && !parent.barren) backfill_.read_maps(parent);

    ProcessInfo info = parent.info;
    info.pid = record.pid;
    info.parent_pid = record.parent_pid;
    info.start_time_ns = backfill_.start_time_of(record.time_ns);
    info.exec_generation = 0;
    info.comm = comm;
    // Only a process in a pid namespace has another number there, and only /proc contains it.
    if (parent.info.ns_pid != 0) info.ns_pid = read_status(options_.proc_root, record.pid).namespace_pid;
    ProcessState& child = registry_.add_process(std::move(info));
    child.space = parent.space;
    child.maps_known = parent.maps_known;
    child.suspect = parent.suspect;
    child.maps_forbidden = parent.maps_forbidden;
    child.exe_pending = parent.exe_pending;
    child.jitdump = parent.jitdump;
    if (parent.jit_module != 0) child.space.forget_answers();  // they name the parent's code
    return born(registry_.add_thread(child, record.tid, comm));
}

std::optional<ProcessRecords::LifecycleEvent> ProcessRecords::on_exit(const TaskRecord& record) {
    ProcessState* process = registry_.by_pid(record.pid);
    if (process == nullptr || process->ended) return std::nullopt;
    if (process->noted) {  // never sampled: no event is reported
        if (record.tid != record.pid || process->info_read_ns > record.time_ns) return std::nullopt;
        process->ended_ns = record.time_ns;
        registry_.end_process(*process);
        return std::nullopt;
    }
    const ThreadHandle known = registry_.thread_by_tid(record.tid);
    const ThreadState* state = registry_.thread(known);
    const bool ours = state != nullptr && state->info.process == process->handle;
    // The end of a former owner of the number, or of a thread that had ended before /proc was read.
    if ((ours ? state->read_ns : process->info_read_ns) > record.time_ns) return std::nullopt;
    const ThreadHandle thread = ours ? known : backfill_.ensure_thread(*process, record.tid);
    registry_.end_thread(thread);
    // Threads that were never seen may live on, but seldom after the leader has exited. If they do, ensure_process
    // finds them again.
    const ThreadState* leader = registry_.thread(registry_.thread_by_tid(record.pid));
    if (process->threads.empty() && leader != nullptr && leader->ended && leader->info.process == process->handle) {
        process->ended_ns = record.time_ns;
        registry_.end_process(*process);
    }
    return LifecycleEvent{wire::LifecycleKind::exit, record.time_ns, thread};
}

std::optional<ProcessRecords::LifecycleEvent> ProcessRecords::on_exec(const CommRecord& record) {
    const auto event = [&](ThreadHandle thread) {
        return LifecycleEvent{wire::LifecycleKind::exec, record.time_ns, thread};
    };
    ProcessState& old = backfill_.ensure_process(record.pid, record.time_ns);
    // /proc already showed the new program, but not necessarily its maps. They start empty here, and a record reports
    // every mapping from now on, as for a program that the agent starts. Mappings in /proc now may be newer than this
    // record.
    if (old.info_read_ns > record.time_ns) {
        if (old.maps_read_ns <= record.time_ns) {
            (void)old.space.replace({});
            old.maps_known = true;
            old.exec_ns = record.time_ns;
        }
        return event(backfill_.ensure_thread(old, record.tid));
    }
    old.ended_ns = record.time_ns;
    ProcessState& process = backfill_.begin_exec(old, record.comm, old.maps_read_ns > record.time_ns);
    return event(registry_.add_thread(process, record.tid, record.comm));
}

std::optional<ProcessRecords::LifecycleEvent> ProcessRecords::on_comm(const CommRecord& record) {
    if (record.exec) return on_exec(record);
    ProcessState& process = backfill_.ensure_process(record.pid, record.time_ns);
    const ThreadHandle handle = backfill_.ensure_thread(process, record.tid);
    ThreadState* thread = registry_.thread(handle);
    if (thread == nullptr || thread->read_ns > record.time_ns || thread->info.comm == record.comm) return std::nullopt;
    thread->info.comm = std::string(record.comm);
    if (record.tid == record.pid) process.info.comm = thread->info.comm;
    return LifecycleEvent{wire::LifecycleKind::comm, record.time_ns, handle};
}

void ProcessRecords::on_mmap2(const MmapRecord& record) {
    if (record.length == 0 || record.start + record.length < record.start) return;
    ProcessState& process = backfill_.ensure_process(record.pid, record.time_ns);
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
    if (is_jitdump_name(mapped.path)) backfill_.note_jitdump(process, mapped.path);
    const ModuleHandle module = modules_.of_mapping(mapped);
    const bool is_vdso = modules_.info(module).kind == wire::ModuleKind::vdso;
    process.space.insert({record.start, end, is_vdso ? 0 : record.page_offset, module});
    // The kernel maps the program itself before its loader.
    if (process.exe_pending && module != 0 && !is_vdso) {
        process.info.exe = mapped.path;
        process.exe_pending = false;
    }
}

void ProcessRecords::on_lost(const LostRecord& record) {
    if (!record.sideband) return;
    registry_.mark_all_suspect();
    wire::Loss loss;
    loss.reason = wire::LossReason::maps_lost;
    loss.count = record.count;
    loss.first_ns = loss.last_ns = record.time_ns;
    loss.cpu_plus_1 = record.cpu + 1;
    losses_.push_back(loss);
}

}  // namespace flamewire::agent
