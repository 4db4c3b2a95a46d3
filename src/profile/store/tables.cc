// Maps entries of a batch to ids of the store. Equal entries get the same id, in any epoch.
#include "profile/store/tables.h"

#include <algorithm>

#include "profile/store/coarsen.h"

namespace flamewire::profile {

namespace {

// Only tests use small limits. A smaller limit would leave no room for a usable chunk.
constexpr std::size_t least_max_rows = 64;

std::string_view base_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

// The module name that is shown with a function. JIT code has one name for all processes, so the same function in
// several processes is one.
std::string_view shown_name(symbol::ModuleKind kind, std::string_view path) {
    if (kind == symbol::ModuleKind::kernel) return "[kernel]";
    if (kind == symbol::ModuleKind::jit && path.starts_with("[jit]")) return "[jit]";
    return base_name(path);
}

symbol::ModuleKind symbol_kind(wire::ModuleKind kind) {
    switch (kind) {
        case wire::ModuleKind::kernel: return symbol::ModuleKind::kernel;
        case wire::ModuleKind::vdso: return symbol::ModuleKind::vdso;
        case wire::ModuleKind::jit: return symbol::ModuleKind::jit;
        case wire::ModuleKind::file: break;
    }
    return symbol::ModuleKind::file;
}

std::uint64_t module_hash(const symbol::ModuleIdentity& identity, const FileIdentity& file) {
    const std::uint64_t kind = static_cast<std::uint64_t>(identity.kind);
    if (!identity.build_id.empty()) return hash_mix(hash_text(identity.build_id), kind);
    return hash_mix(hash_mix(hash_text(identity.path), file.inode ^ kind), file.device ^ identity.size);
}

bool same_module(const symbol::ModuleIdentity& a, const FileIdentity& file_a, const symbol::ModuleIdentity& b,
                 const FileIdentity& file_b) {
    if (a.kind != b.kind || a.build_id != b.build_id) return false;
    return !a.build_id.empty() || (a.path == b.path && a.size == b.size && file_a == file_b);
}

std::uint64_t location_hash(const Location& location) {
    const std::uint64_t where = hash_mix(location.address, hash_seed() ^ location.module);
    return hash_mix(where, (static_cast<std::uint64_t>(location.name) << 8) ^ location.flags ^
                               (static_cast<std::uint64_t>(location.line) << 40));
}

bool same_location(const Location& a, const Location& b) {
    return a.address == b.address && a.module == b.module && a.name == b.name && a.file == b.file && a.line == b.line &&
           a.flags == b.flags;
}

std::uint64_t process_hash(const wire::Process& process) {
    return hash_mix(process.start_time_ns ^ hash_seed(),
                    (static_cast<std::uint64_t>(process.pid) << 32) | process.exec_generation);
}

std::uint64_t thread_hash(ProcessId process, std::uint32_t tid) {
    return hash_mix((static_cast<std::uint64_t>(process) << 32) | tid, hash_seed());
}

void update_text(std::string_view& text, std::string_view newer) {
    if (!newer.empty()) text = newer;
}

}  // namespace

Store::Tables::Tables(StoreLimits store_limits)
    : limits{std::max(store_limits.max_rows, least_max_rows), store_limits.max_table_bytes},
      rows(chunk_rows_for(limits.max_rows)) {}

ModuleId Store::Tables::intern_module(const wire::Module& module, std::string_view path) {
    symbol::ModuleIdentity identity{
        symbol_kind(module.kind), std::string(path), module.build_id, {}, module.size, module.mtime_ns, owner};
    const FileIdentity file{module.device, module.inode, module.mtime_ns};
    const std::uint64_t hash = module_hash(identity, file);
    const auto equal = [&](ModuleId id) { return same_module(identity, file, modules[id].identity, module_files[id]); };
    if (const ModuleId known = module_index.find(hash, equal)) return known;
    if (identity.kind == symbol::ModuleKind::kernel && recording) identity.boot_id = recording->boot_id;
    const ModuleId id = narrow32(modules.size());
    std::string name(shown_name(identity.kind, path));
    module_text_bytes += 2 * path.size() + identity.build_id.size() + identity.boot_id.size() + 64;
    modules.push_back({std::move(identity), std::move(name)});
    module_files.push_back(file);
    module_symbols.emplace_back();
    module_index.insert(hash, id,
                        [this](ModuleId other) { return module_hash(modules[other].identity, module_files[other]); });
    return id;
}

LocationId Store::Tables::intern_location(const Location& location) {
    const std::uint64_t hash = location_hash(location);
    const auto equal = [&](LocationId id) { return same_location(location, locations[id]); };
    if (const LocationId known = location_index.find(hash, equal)) return known;
    const LocationId id = narrow32(locations.size());
    append_tight(locations, location);
    location_index.insert(hash, id, [this](LocationId other) { return location_hash(locations[other]); });
    if (location.name == 0 && location.module != 0) {
        locations[id].state = FrameState::wanted;
        wanted.push_back(id);
    }
    const LocationFrame frame = frame_from_wire(locations[id]);
    replace_frames(id, {&frame, 1});
    return id;
}

StackId Store::Tables::intern_stack(StackId parent, LocationId location) {
    const StackId id = stacks.child(parent, location);
    if (id == node_of_stack.size()) {
        append_tight(stack_depth, static_cast<std::uint16_t>(stack_depth[parent] + 1));
        append_tight(node_of_stack, extend_node(node_of_stack[parent], location));
    }
    return id;
}

ProcessId Store::Tables::intern_process(const wire::Process& process, std::span<const std::uint32_t> strings_of_epoch) {
    const std::uint64_t hash = process_hash(process);
    const auto equal = [&](ProcessId id) {
        const wire::Process& other = processes[id].wire;
        return other.pid == process.pid && other.start_time_ns == process.start_time_ns &&
               other.exec_generation == process.exec_generation;
    };
    ProcessId id = process_index.find(hash, equal);
    if (id == 0) {
        id = narrow32(processes.size());
        Process entry;
        entry.wire = process;
        append_tight(processes, entry);
        process_index.insert(hash, id, [this](ProcessId other) { return process_hash(processes[other].wire); });
    }
    const auto text = [&](wire::Id string) { return strings[strings_of_epoch[string]]; };
    Process& entry = processes[id];
    update_text(entry.comm, text(process.comm));
    update_text(entry.exe, text(process.exe));
    update_text(entry.command_line, text(process.command_line));
    update_text(entry.cgroup, text(process.cgroup));
    update_text(entry.container_id, text(process.container_id));
    return id;
}

ThreadId Store::Tables::intern_thread(ProcessId process, std::uint32_t tid, std::string_view comm) {
    const std::uint64_t hash = thread_hash(process, tid);
    const auto equal = [&](ThreadId id) { return threads[id].process == process && threads[id].tid == tid; };
    ThreadId id = thread_index.find(hash, equal);
    if (id == 0) {
        id = narrow32(threads.size());
        append_tight(threads, Thread{process, processes[process].wire.pid, tid, {}, 0});
        thread_index.insert(hash, id,
                            [this](ThreadId other) { return thread_hash(threads[other].process, threads[other].tid); });
    }
    update_text(threads[id].comm, strings[strings.intern(comm)]);
    return id;
}

EventId Store::Tables::intern_event(std::string_view name, std::string_view unit, const wire::Event& event) {
    const StringId key = strings.intern(name);
    const auto hash_of = [](StringId id) { return hash_mix(id, hash_seed()); };
    const auto equal = [&](EventId id) { return event_names[id] == key; };
    EventId id = event_index.find(hash_of(key), equal);
    if (id == 0) {
        id = narrow32(events.size());
        events.push_back({std::string(name), std::string(unit), 0, 0});
        event_names.push_back(key);
        event_totals.emplace_back();
        event_index.insert(hash_of(key), id, [&](EventId other) { return hash_of(event_names[other]); });
    }
    events[id].frequency_hz = event.frequency_hz;
    events[id].period = event.period;
    // What was traced stays readable after the event is only sampled.
    if (event.traced) {
        if (events[id].fields != event.fields || events[id].print_format != event.print_format)
            ++events[id].description;
        events[id].traced = true;
        events[id].fields = event.fields;
        events[id].print_format = event.print_format;
    }
    return id;
}

void Store::Tables::add_loss(const LossTotal& loss) {
    if (loss.count == 0) return;
    const std::uint64_t key = (static_cast<std::uint64_t>(loss.event) << 16) |
                              (static_cast<std::uint64_t>(loss.reason) << 8) | (loss.by_store ? 1U : 0U);
    const auto [entry, added] = loss_index.try_emplace(key, losses.size());
    if (added) {
        losses.push_back(loss);
        return;
    }
    LossTotal& total = losses[entry->second];
    total.count += loss.count;
    if (loss.first_ns != 0)
        total.first_ns = total.first_ns == 0 ? loss.first_ns : std::min(total.first_ns, loss.first_ns);
    total.last_ns = std::max(total.last_ns, loss.last_ns);
}

std::size_t Store::Tables::memory_bytes() const {
    const auto bytes = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
    std::size_t sum = strings.memory_bytes() + counters.memory_bytes() + thread_times.memory_bytes() +
                      hits.memory_bytes() + marks.memory_bytes() + functions.memory_bytes() + rows.memory_bytes() +
                      stacks.memory_bytes() + nodes.memory_bytes() + module_index.memory_bytes() +
                      location_index.memory_bytes() + process_index.memory_bytes() + thread_index.memory_bytes() +
                      event_index.memory_bytes();
    sum += bytes(modules) + bytes(module_files) + bytes(module_symbols) + bytes(locations) + bytes(wanted) +
           bytes(frames) + bytes(stack_depth) + bytes(node_of_stack) + bytes(processes) + bytes(processes_with_stacks) +
           bytes(threads) + bytes(events);
    sum += module_text_bytes;
    for (const SymbolIntervals& symbols : module_symbols) sum += symbols.memory_bytes();
    for (const auto* map : {&epoch.strings, &epoch.modules, &epoch.locations, &epoch.stacks, &epoch.processes,
                            &epoch.threads, &epoch.events})
        sum += bytes(*map);
    return sum;
}

}  // namespace flamewire::profile
