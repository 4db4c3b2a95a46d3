#include "batch_maker.h"

#include <fmt/format.h>

namespace flamewire::profile {

wire::Id BatchMaker::string(const std::string& text) {
    if (text.empty()) return 0;
    const auto [entry, added] = strings_.try_emplace(text, 0);
    if (added) {
        entry->second = batch_.string_base + static_cast<wire::Id>(batch_.strings.size());
        batch_.strings.push_back(text);
    }
    return entry->second;
}

template <class Entry>
static wire::Id append(std::vector<Entry>& table, wire::Id base, const Entry& entry) {
    table.push_back(entry);
    return base + static_cast<wire::Id>(table.size() - 1);
}

wire::Id BatchMaker::module(const std::string& path, const std::string& build_id, wire::ModuleKind kind) {
    return add({kind, string(path), build_id, 0, 0, 0, 0});
}
wire::Id BatchMaker::add(const wire::Module& module) { return append(batch_.modules, batch_.module_base, module); }
wire::Id BatchMaker::location(wire::Id module, std::uint64_t address, std::uint32_t flags) {
    return append(batch_.locations, batch_.location_base, {module, address, flags, 0, 0, 0});
}
wire::Id BatchMaker::named(const std::string& name, wire::Id module, std::uint32_t flags, const std::string& file,
                           std::uint32_t line) {
    return append(batch_.locations, batch_.location_base, {module, 0, flags, string(name), string(file), line});
}
wire::Id BatchMaker::stack(const std::vector<wire::Id>& outermost_first) {
    wire::Id node = 0;
    for (const wire::Id location : outermost_first) {
        const auto [entry, added] = stacks_.try_emplace({node, location}, 0);
        if (added) entry->second = append(batch_.stacks, batch_.stack_base, {node, location});
        node = entry->second;
    }
    return node;
}
wire::Id BatchMaker::process(std::uint32_t pid, std::uint64_t start_time_ns, std::uint32_t exec_generation,
                             const std::string& comm) {
    wire::Process process;
    process.pid = pid;
    process.start_time_ns = start_time_ns;
    process.exec_generation = exec_generation;
    process.comm = string(comm);
    return append(batch_.processes, batch_.process_base, process);
}
wire::Id BatchMaker::thread(wire::Id process, std::uint32_t tid, const std::string& comm) {
    return append(batch_.threads, batch_.thread_base, {process, tid, string(comm)});
}
wire::Id BatchMaker::event(const std::string& name, const std::string& unit, std::uint64_t period) {
    return append(batch_.events, batch_.event_base, {string(name), string(unit), 99, period});
}
void BatchMaker::row(std::uint64_t bucket, wire::Id event, wire::Id thread, wire::Id stack, std::uint32_t count,
                     std::uint64_t weight, std::uint32_t cpu) {
    batch_.rows.push_back({bucket, event, thread, cpu, stack, count, weight});
}

wire::Batch BatchMaker::take() {
    wire::Batch taken = std::move(batch_);
    batch_ = wire::Batch{};
    batch_.recording_id = taken.recording_id;
    batch_.epoch = taken.epoch;
    batch_.seq = taken.seq + 1;
    batch_.bucket_ns = taken.bucket_ns;
    const auto next = [](wire::Id base, std::size_t count) { return base + static_cast<wire::Id>(count); };
    batch_.string_base = next(taken.string_base, taken.strings.size());
    batch_.module_base = next(taken.module_base, taken.modules.size());
    batch_.location_base = next(taken.location_base, taken.locations.size());
    batch_.stack_base = next(taken.stack_base, taken.stacks.size());
    batch_.process_base = next(taken.process_base, taken.processes.size());
    batch_.thread_base = next(taken.thread_base, taken.threads.size());
    batch_.event_base = next(taken.event_base, taken.events.size());
    return taken;
}

wire::Batch BatchMaker::take_and_end_epoch() {
    wire::Batch taken = take();
    const wire::Batch last = std::move(batch_);
    batch_ = wire::Batch{};
    batch_.recording_id = last.recording_id;
    batch_.epoch = last.epoch + 1;
    batch_.seq = last.seq;
    strings_.clear();
    stacks_.clear();
    return taken;
}

symbol::Resolved answer(const PendingModule& pending, const KnownFrames& known) {
    symbol::Resolved resolved;
    resolved.strings.emplace_back();
    const auto string = [&](const std::string& text) {
        if (text.empty()) return std::uint32_t{0};
        resolved.strings.push_back(text);
        return static_cast<std::uint32_t>(resolved.strings.size() - 1);
    };
    resolved.first.push_back(0);
    for (const CodeAddress& address : pending.addresses) {
        const auto found = known.find(address.lookup());
        if (found != known.end())
            for (const KnownFrame& frame : found->second)
                resolved.frames.push_back({string(frame.function), string(frame.file), frame.line, frame.inlined});
        resolved.first.push_back(static_cast<std::uint32_t>(resolved.frames.size()));
    }
    return resolved;
}

std::size_t symbolize(Store& store, const KnownFrames& known) {
    std::size_t requested = 0;
    for (const PendingModule& pending : store.take_pending()) {
        requested += pending.addresses.size();
        store.set_frames(pending, answer(pending, known));
    }
    return requested;
}

std::string show(const Store& store, const CallTree& tree) {
    std::vector<std::vector<std::uint32_t>> children(tree.nodes.size());
    for (std::uint32_t i = 1; i < tree.nodes.size(); ++i) children[tree.nodes[i].parent].push_back(i);
    std::string out;
    const auto put = [&](const auto& self, std::uint32_t index, std::size_t depth) -> void {
        const CallTree::Node& node = tree.nodes[index];
        const Function& function = tree.functions[node.function];
        out.append(2 * depth, ' ');
        if (function.kind == FrameKind::inlined) out += '~';
        if (function.kind == FrameKind::unknown && function.name != 0) out += '?';
        out += fmt::format("{} {}/{}", function.name == 0 ? "root" : store.string(function.name), node.self.samples,
                           node.total.samples);
        if (node.pruned_children != 0) out += fmt::format(" -{}", node.pruned_children);
        out += '\n';
        for (const std::uint32_t child : children[index]) self(self, child, depth + 1);
    };
    put(put, 0, 0);
    return out;
}

std::string show(const Store& store, const std::vector<FunctionRow>& rows) {
    std::string out;
    for (const FunctionRow& row : rows)
        out += fmt::format("{} {}/{};", store.string(row.function.name), row.self.samples, row.total.samples);
    return out;
}

}  // namespace flamewire::profile
