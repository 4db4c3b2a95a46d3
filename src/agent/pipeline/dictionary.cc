#include "agent/pipeline/dictionary.h"

#include <algorithm>

namespace flamewire::agent {
namespace {

// An unordered_map node, its bucket and the string object.
constexpr std::size_t string_overhead_bytes = 80;

}  // namespace

wire::Id Dictionary::string(std::string_view text) {
    if (text.empty()) return 0;
    const auto [place, added] = strings_.try_emplace(std::string(text), tables_.strings.next());
    if (added) {
        tables_.strings.add(place->first);
        string_bytes_ += text.size() + string_overhead_bytes;
    }
    return place->second;
}

wire::Id Dictionary::module(ModuleHandle handle) {
    if (handle == 0) return 0;
    const wire::Id id = modules_.find_or_add({handle}, tables_.modules.next());
    if (id == tables_.modules.next()) {
        const ModuleInfo& info = processes_.module(handle);
        tables_.modules.add(
            {info.kind, string(info.path), info.build_id, info.device, info.inode, info.size, info.mtime_ns});
        if (info.kind == wire::ModuleKind::vdso) new_vdsos_.push_back(handle);
    }
    return id;
}

wire::Id Dictionary::address(ResolvedAddress resolved, std::uint32_t flags) {
    return tables_.location({module(resolved.module), resolved.address, flags, 0, 0, 0});
}

wire::Id Dictionary::function_of(ModuleHandle module_handle, const JitFunction& function, std::uint32_t flags) {
    const wire::Id name = string(function.name), module_id = module(module_handle);
    return tables_.location({module_id, 0, flags, name, string(function.file), function.line});
}

wire::Id Dictionary::process(ProcessHandle handle) {
    if (handle == 0) return 0;
    const wire::Id id = processes_seen_.find_or_add({handle}, tables_.processes.next());
    if (id == tables_.processes.next()) {
        tables_.processes.add({});
        fresh_processes_.push_back({handle, processes_.process(handle)});
    }
    return id;
}

wire::Id Dictionary::thread(ThreadHandle handle) {
    if (handle == 0) return 0;
    const wire::Id id = threads_.find_or_add({handle}, tables_.threads.next());
    if (id == tables_.threads.next()) {
        const ThreadInfo& info = processes_.thread(handle);
        fresh_threads_.push_back({handle, info});
        tables_.threads.add({process(info.process), 0, 0});
    }
    return id;
}

wire::Id Dictionary::event(wire::Event event, std::string_view name, std::string_view unit) {
    event.name = string(name);
    event.unit = string(unit);
    return tables_.events.add(event);
}

wire::Process Dictionary::describe(const ProcessInfo& info) {
    return {
        info.pid,          info.ns_pid,      info.parent_pid,           info.start_time_ns,  info.exec_generation,
        string(info.comm), string(info.exe), string(info.command_line), string(info.cgroup), string(info.container_id)};
}

void Dictionary::flush(wire::Batch& batch) {
    for (std::size_t i = 0; i < fresh_processes_.size(); ++i) {
        const ProcessInfo& now = processes_.process(fresh_processes_[i].handle);
        const bool known = now.pid != 0 || !now.comm.empty();
        tables_.processes.unsent()[i] = describe(known ? now : fresh_processes_[i].info);
    }
    for (std::size_t i = 0; i < fresh_threads_.size(); ++i) {
        const ThreadInfo& now = processes_.thread(fresh_threads_[i].handle);
        const ThreadInfo& info = now.process != 0 ? now : fresh_threads_[i].info;
        wire::Thread& thread = tables_.threads.unsent()[i];
        thread.tid = info.tid;
        thread.comm = string(info.comm);
    }
    fresh_processes_.clear();
    fresh_threads_.clear();
    tables_.flush(batch);
}

std::size_t Dictionary::bytes() const {
    return string_bytes_ + modules_.bytes() + processes_seen_.bytes() + threads_.bytes() + tables_.bytes();
}

std::vector<SavedStack> Dictionary::keep(std::span<wire::Id* const> stacks) const {
    std::vector<SavedStack> kept;
    if (stacks.empty()) return kept;
    const std::vector<wire::StackNode> nodes = tables_.all_stacks();
    const std::vector<wire::Location> locations = tables_.all_locations();
    std::vector<ModuleHandle> modules(tables_.modules.next());
    modules_.each([&](const HandleKey& key, wire::Id id) { modules[id] = key.handle; });
    std::vector<std::string_view> texts(tables_.strings.next());
    for (const auto& [text, id] : strings_) texts[id] = text;
    for (const wire::Id* stack : stacks) {
        SavedStack& one = kept.emplace_back();
        for (wire::Id id = *stack; id != 0; id = nodes[id].parent) {
            const wire::Location& from = locations[nodes[id].location];
            one.push_back({modules[from.module], from.address, from.flags, from.line, std::string(texts[from.name]),
                           std::string(texts[from.file])});
        }
        std::reverse(one.begin(), one.end());
    }
    return kept;
}

wire::Id Dictionary::put_back(const SavedStack& stack_kept) {
    wire::Id id = 0;
    for (const SavedFrame& frame : stack_kept) {
        const wire::Id name = string(frame.name), module_id = module(frame.module);
        id = stack(id, tables_.location({module_id, frame.address, frame.flags, name, string(frame.file), frame.line}));
    }
    return id;
}

void Dictionary::clear() {
    tables_ = recording::InternedTables();
    strings_ = {};
    string_bytes_ = 0;
    modules_.clear();
    new_vdsos_.clear();
    processes_seen_.clear();
    threads_.clear();
}

}  // namespace flamewire::agent
