#include "profile/formats/json.h"

#include <vector>

#include "base/cgroup_path.h"
#include "profile/formats/json_put.h"
#include "profile/formats/thread_samples.h"
#include "profile/query/query.h"

namespace flamewire::profile {

namespace {

void put_function(JsonOutput& out, const Store& store, const Function& function) {
    put(out, "name", store.string(function.name));
    if (function.module != 0) put(out, "module", store.string(function.module));
    put(out, "kind", kind_name(function.kind));
}

void put_recording(JsonOutput& out, const wire::Recording& recording) {
    put(out, "target", recording.target);
    put(out, "host", recording.host);
    put(out, "arch", recording.arch);
    put(out, "kernel", recording.kernel_release);
    put(out, "agent_version", recording.agent_version);
    put(out, "unwind", recording.unwind);
    put(out, "stack_bytes", std::uint64_t{recording.stack_bytes});
    put(out, "max_depth", std::uint64_t{recording.max_depth});
    put(out, "frequency_hz", std::uint64_t{recording.frequency_hz});
    put(out, "period", recording.period);
}

// The unwinding mode of each process and the outcome for its stacks.
void put_unwind_processes(JsonOutput& out, const Store& store) {
    out.Key("unwind_processes");
    out.StartArray();
    for (const Process& process : store.processes()) {
        if (!process.unwind) continue;
        const wire::ProcessUnwind& unwind = *process.unwind;
        out.StartObject();
        put(out, "pid", std::uint64_t{process.wire.pid});
        put(out, "comm", process.comm);
        put(out, "mode", mode_name(unwind.mode));
        put(out, "why", unwind.why);
        put(out, "samples", unwind.samples);
        put(out, "whole", unwind.whole);
        put(out, "joined", unwind.joined);
        put(out, "truncated", unwind.truncated);
        put(out, "open_end", unwind.open_end);
        put(out, "stopped", unwind.stopped);
        put(out, "frames", unwind.frames);
        put(out, "stack_bytes", unwind.stack_bytes);
        out.EndObject();
    }
    out.EndArray();
}

// The processes with samples in the exported part, and where they run.
void put_processes(JsonOutput& out, const Store& store, const Filter& filter) {
    std::vector<bool> has(store.processes().size());
    for (const ThreadRow& row : thread_summary(store, filter)) has[store.threads()[row.thread].process] = true;
    out.Key("processes");
    out.StartArray();
    for (ProcessId id = 1; id < has.size(); ++id) {
        if (!has[id]) continue;
        const Process& process = store.processes()[id];
        out.StartObject();
        put(out, "pid", std::uint64_t{process.wire.pid});
        if (process.wire.ns_pid != 0) put(out, "ns_pid", std::uint64_t{process.wire.ns_pid});
        put(out, "comm", process.comm);
        put(out, "exe", process.exe);
        put(out, "command_line", process.command_line);
        put(out, "cgroup", process.cgroup);
        put(out, "container_id", process.container_id);
        put(out, "pod_uid", parse_cgroup_path(process.cgroup).pod_uid);
        out.EndObject();
    }
    out.EndArray();
}

void put_metadata(JsonOutput& out, const Store& store, const Filter& filter, const JsonOptions& options) {
    out.Key("metadata");
    out.StartObject();
    if (!options.name.empty()) put(out, "name", options.name);
    if (!options.tags.empty()) {
        out.Key("tags");
        out.StartObject();
        for (const auto& [key, value] : options.tags) put(out, key.c_str(), value);
        out.EndObject();
    }
    if (store.recording()) put_recording(out, *store.recording());
    put(out, "start_ns", store.first_ns());
    put(out, "end_ns", store.end_ns());
    put(out, "samples", store.total(0).samples);
    put_processes(out, store, filter);
    put_unwind_processes(out, store);
    out.Key("losses");
    out.StartArray();
    for (const LossTotal& loss : store.losses()) {
        out.StartObject();
        put(out, "reason", static_cast<std::uint64_t>(loss.reason));
        put(out, "count", loss.count);
        if (loss.event != 0) put(out, "event", store.events()[loss.event].name);
        out.Key("by_store");
        out.Bool(loss.by_store);
        out.EndObject();
    }
    out.EndArray();
    out.EndObject();
}

void put_functions(JsonOutput& out, const Store& store, const Filter& filter) {
    out.Key("functions");
    out.StartArray();
    for (const FunctionRow& row : functions(store, filter)) {
        if (out.full()) break;
        out.StartObject();
        put_function(out, store, row.function);
        if (row.function.file != 0) put(out, "file", store.string(row.function.file));
        if (row.function.line != 0) put(out, "line", std::uint64_t{row.function.line});
        put(out, "self_samples", row.self.samples);
        put(out, "self_weight", row.self.weight);
        put(out, "samples", row.total.samples);
        put(out, "weight", row.total.weight);
        out.EndObject();
    }
    out.EndArray();
}

// Writes nested objects from a list of children and an explicit stack, so that deep profiles cannot overflow the call
// stack.
void put_flame_graph(JsonOutput& out, const Store& store, const CallTree& tree) {
    // The children of a node are adjacent (breadth-first order), so two indices describe them all.
    std::vector<std::uint32_t> first_child(tree.nodes.size()), child_end(tree.nodes.size());
    for (std::uint32_t i = 1; i < tree.nodes.size(); ++i) {
        const std::uint32_t parent = tree.nodes[i].parent;
        if (child_end[parent] == 0) first_child[parent] = i;
        child_end[parent] = i + 1;
    }
    const auto open = [&](std::uint32_t i) {
        const CallTree::Node& node = tree.nodes[i];
        out.StartObject();
        if (i == 0)
            put(out, "name", "root");
        else
            put_function(out, store, tree.functions[node.function]);
        put(out, "value", node.total.samples);
        put(out, "weight", node.total.weight);
        put(out, "self", node.self.samples);
        put(out, "self_weight", node.self.weight);
        out.Key("children");
        out.StartArray();
    };
    std::vector<std::uint32_t> path{0};  // open objects
    std::vector<std::uint32_t> next = first_child;
    open(0);
    while (!path.empty() && !out.full()) {
        const std::uint32_t node = path.back();
        if (next[node] < child_end[node]) {
            const std::uint32_t child = next[node]++;
            open(child);
            path.push_back(child);
        } else {
            out.EndArray();
            out.EndObject();
            path.pop_back();
        }
    }
}

}  // namespace

std::string_view kind_name(FrameKind kind) {
    switch (kind) {
        case FrameKind::user:
            return "user";
        case FrameKind::kernel:
            return "kernel";
        case FrameKind::jit:
            return "jit";
        case FrameKind::inlined:
            return "inlined";
        case FrameKind::unknown:
            break;
    }
    return "unknown";
}

std::string_view mode_name(wire::StackMode mode) {
    switch (mode) {
        case wire::StackMode::fp:
            return "fp";
        case wire::StackMode::hybrid:
            return "hybrid";
        case wire::StackMode::dwarf:
            return "dwarf";
        case wire::StackMode::lbr:
            break;
    }
    return "lbr";
}

Result<std::string> json(const Store& store, const Filter& filter, const JsonOptions& options) {
    JsonBuffer buffer(options.max_bytes);
    JsonOutput out(buffer);
    out.StartObject();
    put_metadata(out, store, filter, options);
    out.Key("events");
    out.StartArray();
    for (const EventId event : events_of(store, filter)) {
        Filter one = filter;
        one.event = event;
        if (out.full()) break;
        const CallTree tree = call_tree(store, one);
        out.StartObject();
        put(out, "name", store.events()[event].name);
        put(out, "unit", store.events()[event].unit);
        put(out, "samples", tree.total.samples);
        put(out, "weight", tree.total.weight);
        put_functions(out, store, one);
        out.Key("flamegraph");
        put_flame_graph(out, store, tree);
        out.EndObject();
    }
    out.EndArray();
    out.EndObject();
    return buffer.take("JSON");
}

}  // namespace flamewire::profile
