#include "agent/pipeline/dictionary.h"

#include <algorithm>
#include <utility>

namespace flamewire::agent {
namespace {

// An unordered_map node, its bucket and the string object.
constexpr std::size_t string_overhead_bytes = 80;

}  // namespace

std::uint64_t Dictionary::LocationKey::hash() const {
    return mix_in(mix_in(0, address), std::uint64_t{module} << 32 | flags);
}
std::uint64_t Dictionary::NodeKey::hash() const { return mix_in(0, std::uint64_t{parent} << 32 | location); }
std::uint64_t Dictionary::NameKey::hash() const {
    return mix_in(mix_in(0, std::uint64_t{name} << 32 | module), std::uint64_t{line} << 32 | (file << 8 ^ flags));
}
std::uint64_t Dictionary::HandleKey::hash() const { return mix_in(0, handle); }

wire::Id Dictionary::string(std::string_view text) {
    if (text.empty()) return 0;
    const auto [place, added] = strings_.try_emplace(std::string(text), next_.string);
    if (added) {
        ++next_.string;
        string_bytes_ += text.size() + string_overhead_bytes;
        fresh_.strings.emplace_back(text);
    }
    return place->second;
}

wire::Id Dictionary::module(ModuleHandle handle) {
    if (handle == 0) return 0;
    const wire::Id id = modules_.find_or_add({handle}, next_.module);
    if (id == next_.module) {
        ++next_.module;
        const ModuleInfo& info = processes_.module(handle);
        fresh_.modules.push_back(
            {info.kind, string(info.path), info.build_id, info.device, info.inode, info.size, info.mtime_ns});
    }
    return id;
}

wire::Id Dictionary::address(ResolvedAddress resolved, std::uint32_t flags) {
    const wire::Id module_id = module(resolved.module);
    const wire::Id id = locations_.find_or_add({resolved.address, module_id, flags}, next_.location);
    if (id == next_.location) {
        ++next_.location;
        fresh_.locations.push_back({module_id, resolved.address, flags, 0, 0, 0});
    }
    return id;
}

wire::Id Dictionary::function_of(ModuleHandle module_handle, const JitFunction& function, std::uint32_t flags) {
    const NameKey key{string(function.name), module(module_handle), string(function.file), function.line, flags};
    const wire::Id id = names_.find_or_add(key, next_.location);
    if (id == next_.location) {
        ++next_.location;
        fresh_.locations.push_back({key.module, 0, flags, key.name, key.file, key.line});
    }
    return id;
}

wire::Id Dictionary::stack(wire::Id parent, wire::Id location) {
    const wire::Id id = stacks_.find_or_add({parent, location}, next_.stack);
    if (id == next_.stack) {
        ++next_.stack;
        fresh_.stacks.push_back({parent, location});
    }
    return id;
}

wire::Id Dictionary::process(ProcessHandle handle) {
    if (handle == 0) return 0;
    const wire::Id id = processes_seen_.find_or_add({handle}, next_.process);
    if (id == next_.process) {
        ++next_.process;
        fresh_processes_.push_back({handle, processes_.process(handle)});
    }
    return id;
}

wire::Id Dictionary::thread(ThreadHandle handle) {
    if (handle == 0) return 0;
    const wire::Id id = threads_.find_or_add({handle}, next_.thread);
    if (id == next_.thread) {
        ++next_.thread;
        const ThreadInfo& info = processes_.thread(handle);
        fresh_threads_.push_back({handle, info});
        fresh_thread_processes_.push_back(process(info.process));
    }
    return id;
}

wire::Id Dictionary::event(wire::Event event, std::string_view name, std::string_view unit) {
    event.name = string(name);
    event.unit = string(unit);
    fresh_.events.push_back(event);
    return next_.event++;
}

wire::Process Dictionary::describe(const ProcessInfo& info) {
    return {
        info.pid,          info.ns_pid,      info.parent_pid,           info.start_time_ns,  info.exec_generation,
        string(info.comm), string(info.exe), string(info.command_line), string(info.cgroup), string(info.container_id)};
}

void Dictionary::flush(wire::Batch& batch) {
    for (const Pending<ProcessInfo>& pending : fresh_processes_) {
        const ProcessInfo& now = processes_.process(pending.handle);
        const bool known = now.pid != 0 || !now.comm.empty();
        fresh_.processes.push_back(describe(known ? now : pending.info));
    }
    for (std::size_t i = 0; i < fresh_threads_.size(); ++i) {
        const ThreadInfo& now = processes_.thread(fresh_threads_[i].handle);
        const ThreadInfo& info = now.process != 0 ? now : fresh_threads_[i].info;
        fresh_.threads.push_back({fresh_thread_processes_[i], info.tid, string(info.comm)});
    }
    fresh_processes_.clear();
    fresh_threads_.clear();
    fresh_thread_processes_.clear();

    batch.string_base = sent_.string;
    batch.module_base = sent_.module;
    batch.location_base = sent_.location;
    batch.stack_base = sent_.stack;
    batch.process_base = sent_.process;
    batch.thread_base = sent_.thread;
    batch.event_base = sent_.event;
    batch.strings = std::exchange(fresh_.strings, {});
    batch.modules = std::exchange(fresh_.modules, {});
    batch.locations = std::exchange(fresh_.locations, {});
    batch.stacks = std::exchange(fresh_.stacks, {});
    batch.processes = std::exchange(fresh_.processes, {});
    batch.threads = std::exchange(fresh_.threads, {});
    batch.events = std::exchange(fresh_.events, {});
    sent_ = next_;
}

std::size_t Dictionary::bytes() const {
    return string_bytes_ + modules_.bytes() + processes_seen_.bytes() + threads_.bytes() + locations_.bytes() +
           stacks_.bytes();
}

std::vector<SavedStack> Dictionary::keep(std::span<wire::Id* const> stacks) const {
    std::vector<SavedStack> kept;
    if (stacks.empty()) return kept;
    std::vector<NodeKey> nodes(next_.stack);
    stacks_.each([&](const NodeKey& key, wire::Id id) { nodes[id] = key; });
    std::vector<ModuleHandle> modules(next_.module);
    modules_.each([&](const HandleKey& key, wire::Id id) { modules[id] = key.handle; });
    std::vector<const std::string*> texts(next_.string);
    for (const auto& [text, id] : strings_) texts[id] = &text;
    std::vector<SavedFrame> frames(next_.location);
    locations_.each([&](const LocationKey& key, wire::Id id) {
        frames[id] = {modules[key.module], key.address, key.flags, 0, {}, {}};
    });
    names_.each([&](const NameKey& key, wire::Id id) {
        frames[id] = {modules[key.module], 0,
                      key.flags,           key.line,
                      *texts[key.name],    key.file != 0 ? *texts[key.file] : std::string()};
    });
    for (const wire::Id* stack : stacks) {
        SavedStack& one = kept.emplace_back();
        for (wire::Id id = *stack; id != 0; id = nodes[id].parent) one.push_back(frames[nodes[id].location]);
        std::reverse(one.begin(), one.end());
    }
    return kept;
}

wire::Id Dictionary::put_back(const SavedStack& stack_kept) {
    wire::Id id = 0;
    for (const SavedFrame& frame : stack_kept) {
        const wire::Id location = frame.name.empty()
                                      ? address({frame.module, frame.address}, frame.flags)
                                      : function_of(frame.module, {frame.name, frame.file, frame.line}, frame.flags);
        id = stack(id, location);
    }
    return id;
}

void Dictionary::clear() {
    next_ = sent_ = {};
    strings_ = {};
    string_bytes_ = 0;
    modules_.clear();
    processes_seen_.clear();
    threads_.clear();
    locations_.clear();
    stacks_.clear();
    names_ = {};
}

}  // namespace flamewire::agent
