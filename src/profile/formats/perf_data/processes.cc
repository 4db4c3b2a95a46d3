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

// Limit for all address spaces: some hundreds of MiB. Damaged files can have any number of mappings.
constexpr std::size_t most_areas = std::size_t{1} << 22;
// The kernel's default limit of one process (vm.max_map_count) is 65,530, data included.
constexpr std::size_t most_areas_of_one = std::size_t{1} << 17;

}  // namespace

void AddressSpace::add(std::uint64_t start, const Area& area) {
    if (alive_ >= most_areas || areas_.size() >= most_areas_of_one) return;
    if (areas_.emplace(start, area).second) ++alive_;
}

std::shared_ptr<AddressSpace> AddressSpace::copy(std::uint64_t generation) const {
    auto result = std::make_shared<AddressSpace>(modules_, alive_, generation);
    if (alive_ + areas_.size() > most_areas) return result;
    result->areas_ = areas_;
    result->has_jit_ = has_jit_;
    alive_ += areas_.size();
    return result;
}

void AddressSpace::map(std::uint64_t start, std::uint64_t size, std::uint64_t offset, unwind::ModuleId module,
                       std::uint64_t generation) {
    const std::uint64_t end = start + std::min(size, std::numeric_limits<std::uint64_t>::max() - start);
    if (end == start) return;
    // The area that starts before and overlaps keeps its front, and its back if it ends later.
    auto next = areas_.lower_bound(start);
    if (next != areas_.begin()) {
        const auto before = std::prev(next);
        const Area old = before->second;
        if (old.end > start) {
            before->second.end = start;
            if (old.end > end) add(end, {old.end, old.offset + (end - before->first), old.module});
        }
    }
    next = areas_.lower_bound(start);
    while (next != areas_.end() && next->first < end) {
        const std::uint64_t old_start = next->first;
        const Area old = next->second;
        next = areas_.erase(next);
        --alive_;
        if (old.end > end) add(end, {old.end, old.offset + (end - old_start), old.module});
    }
    if (module != 0) {
        add(start, {end, offset, module});
        has_jit_ = has_jit_ || modules_.at(module).kind == wire::ModuleKind::jit;
    }
    generation_ = generation;
}

std::optional<AddressSpace::Place> AddressSpace::place_of(std::uint64_t address) const {
    auto found = areas_.upper_bound(address);
    if (found == areas_.begin()) return std::nullopt;
    --found;
    if (address >= found->second.end) return std::nullopt;
    return Place{found->first, found->second};
}

std::optional<unwind::CodePiece> AddressSpace::find(std::uint64_t address) {
    const auto place = place_of(address);
    if (!place) return std::nullopt;
    unwind::CodePiece piece;
    piece.start = place->start;
    piece.end = place->area.end;
    Module& module = modules_.at(place->area.module);
    if (module.kind != wire::ModuleKind::file) return piece;
    piece.module = module.id;
    piece.bias = address - modules_.virtual_address(module, place->start, place->area.offset,
                                                    place->area.offset + (address - place->start));
    return piece;
}

Process& Processes::process(std::uint32_t pid) {
    const auto [entry, added] = processes_.try_emplace(pid);
    if (added) {
        entry->second.pid = pid;
        entry->second.comm = default_comm(pid);
        entry->second.space = new_space();
    }
    return entry->second;
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
    if (module == 0 && owner.space->empty()) return;
    if (owner.space.use_count() > 1) owner.space = owner.space->copy(++generation_);
    owner.space->map(map.start, map.length, map.page_offset, module, ++generation_);
    if (owner.exe.empty() && module != 0 && map.path.starts_with('/')) owner.exe = map.path;
}

void Processes::name(const perf::CommRecord& comm) {
    Process& owner = process(comm.pid);
    if (comm.exec) {
        // After an exec the process runs another program; its other threads and its memory are gone.
        owner.space = new_space();
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
        Process& parent = process(task.parent_pid);
        Process child;
        child.pid = task.pid;
        child.parent_pid = task.parent_pid;
        child.comm = comm;
        child.start_ns = task.time_ns;
        child.space = task.with_maps ? parent.space : new_space();
        child.exe = task.with_maps ? parent.exe : std::string();
        processes_[task.pid] = std::move(child);
    }
    threads_[task.tid] = {task.pid, process(task.pid).executions, comm, 0};
}

}  // namespace flamewire::profile::perf_data
