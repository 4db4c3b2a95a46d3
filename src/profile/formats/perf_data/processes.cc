#include "profile/formats/perf_data/processes.h"

#include <algorithm>
#include <limits>

namespace flamewire::profile::perf_data {
namespace {

constexpr std::uint32_t exited_pid = std::numeric_limits<std::uint32_t>::max();

// The agent's names for processes without a known name.
std::string default_comm(std::uint32_t pid) {
    if (pid == 0) return "swapper";
    return pid == exited_pid ? "[exited]" : "[unknown]";
}

// Limit for all address spaces: more than a hundred MiB. Damaged files can have any number of mappings.
constexpr std::size_t most_mappings = std::size_t{1} << 22;
// Mappings that the process has removed are counted, because no record says so.
constexpr std::size_t most_mappings_of_one = 2 * process::AddressSpace::usual_limit;

std::size_t size_of(const process::SharedSpace& space) { return space.map().mappings().size(); }

}  // namespace

std::optional<unwind::CodePiece> ProcessCode::find(std::uint64_t address) {
    const process::Mapping* mapping = process_.find(address);
    if (mapping == nullptr) return std::nullopt;
    unwind::CodePiece piece;
    piece.start = mapping->start;
    piece.end = mapping->end;
    Module& module = modules_.at(mapping->module);
    if (module.kind != wire::ModuleKind::file) return piece;
    piece.module = module.id;
    piece.bias = address - modules_.virtual_address(module, *mapping, address);
    return piece;
}

process::SharedSpace Processes::new_space() {
    return process::SharedSpace(generations_, process::AddressSpace(most_mappings_of_one));
}

// The process is about to get another space.
void Processes::forget_space(const Process& process) {
    if (!process.space.shared()) mappings_ -= size_of(process.space);
}

Process& Processes::process(std::uint32_t pid) {
    if (const auto found = processes_.find(pid); found != processes_.end()) return found->second;
    Process& added = processes_.try_emplace(pid, pid, new_space()).first->second;
    added.comm = default_comm(pid);
    return added;
}

Thread& Processes::thread(std::uint32_t pid, std::uint32_t tid) {
    Thread& thread = threads_[tid];
    const Process& owner = process(pid);
    if (thread.comm.empty() || thread.pid != pid || thread.executions != owner.executions)
        thread = {pid, owner.executions, owner.comm, 0};
    return thread;
}

void Processes::map(const perf::MmapRecord& map) {
    Process& owner = process(map.pid);
    // Mappings that are not executable only matter if they replace executable ones.
    const unwind::ModuleId module = map.executable() ? modules_.of_mapping(map).id : 0;
    process::SharedSpace& space = owner.space;
    if (module == 0 && size_of(space) == 0) return;
    if (space.shared() && mappings_ + size_of(space) > most_mappings) {
        space = new_space();
        owner.has_jit = false;
    }
    const std::size_t before = space.shared() ? 0 : size_of(space);
    const std::uint64_t end = map.start + std::min(map.length, std::numeric_limits<std::uint64_t>::max() - map.start);
    if (module == 0 || mappings_ >= most_mappings)
        space.erase(map.start, end);
    else
        space.insert({map.start, end, map.page_offset, module});
    mappings_ += size_of(space) - before;
    owner.has_jit = owner.has_jit || (module != 0 && modules_.at(module).kind == wire::ModuleKind::jit);
    if (owner.exe.empty() && module != 0 && map.path.starts_with('/')) owner.exe = map.path;
}

void Processes::name(const perf::CommRecord& comm) {
    Process& owner = process(comm.pid);
    if (comm.exec) {
        // After an exec the process runs another program; its other threads and its memory are gone.
        forget_space(owner);
        owner.space = new_space();
        owner.has_jit = false;
        owner.exe.clear();
        ++owner.executions;
        owner.start_ns = comm.time_ns;
        owner.wire_id = 0;
    }
    if (comm.pid == comm.tid) owner.comm = comm.comm;
    Thread& renamed = thread(comm.pid, comm.tid);
    if (renamed.comm == comm.comm) return;
    renamed.comm = comm.comm;
    renamed.wire_id = 0;
}

void Processes::fork(const perf::TaskRecord& task) {
    const std::string comm = thread(task.parent_pid, task.parent_tid).comm;
    if (task.pid != task.parent_pid) {
        const Process& parent = process(task.parent_pid);
        Process child(task.pid, task.with_maps ? parent.space : new_space());
        child.parent_pid = task.parent_pid;
        child.comm = comm;
        child.start_ns = task.time_ns;
        child.has_jit = task.with_maps && parent.has_jit;
        child.exe = task.with_maps ? parent.exe : std::string();
        Process& owner = process(task.pid);
        forget_space(owner);
        owner = std::move(child);
    }
    threads_[task.tid] = {task.pid, process(task.pid).executions, comm, 0};
}

}  // namespace flamewire::profile::perf_data
