#include "profile/formats/json.h"

#include <vector>

#include "base/cgroup_path.h"
#include "profile/formats/bounded_json.h"
#include "profile/formats/thread_samples.h"
#include "profile/query/query.h"
#include "profile/query/unwinding.h"

namespace flamewire::profile {

namespace {

void put_function(BoundedJson& out, const Store& store, const Function& function) {
    out.member("name", store.string(function.name));
    if (function.module != 0) out.member("module", store.string(function.module));
    out.member("kind", kind_name(function.kind));
}

void put_recording(BoundedJson& out, const wire::Recording& recording) {
    out.member("target", recording.target);
    out.member("host", recording.host);
    out.member("arch", recording.arch);
    out.member("kernel", recording.kernel_release);
    out.member("agent_version", recording.agent_version);
    out.member("unwind", recording.unwind);
    out.member("stack_bytes", recording.stack_bytes);
    out.member("max_depth", recording.max_depth);
    out.member("frequency_hz", recording.frequency_hz);
    out.member("period", recording.period);
}

// The unwinding mode of each process and the outcome for its stacks.
void put_unwind_processes(BoundedJson& out, const Store& store) {
    out.array("unwind_processes");
    for (const Process& process : store.processes()) {
        if (!process.unwind) continue;
        const wire::ProcessUnwind& unwind = *process.unwind;
        out.object();
        out.member("pid", process.wire.pid);
        out.member("comm", process.comm);
        out.member("mode", mode_name(unwind.mode));
        out.member("why", unwind.why);
        out.member("samples", unwind.samples);
        out.member("whole", unwind.whole);
        out.member("joined", unwind.joined);
        out.member("truncated", unwind.truncated);
        out.member("open_end", unwind.open_end);
        out.member("stopped", unwind.stopped);
        out.member("frames", unwind.frames);
        out.member("stack_bytes", unwind.stack_bytes);
        out.end_object();
    }
    out.end_array();
}

// The processes with samples in the exported part, and where they run.
void put_processes(BoundedJson& out, const Store& store, const Filter& filter) {
    std::vector<bool> has(store.processes().size());
    for (const ThreadRow& row : thread_summary(store, filter)) has[store.threads()[row.thread].process] = true;
    out.array("processes");
    for (ProcessId id = 1; id < has.size(); ++id) {
        if (!has[id]) continue;
        const Process& process = store.processes()[id];
        out.object();
        out.member("pid", process.wire.pid);
        if (process.wire.ns_pid != 0) out.member("ns_pid", process.wire.ns_pid);
        out.member("comm", process.comm);
        out.member("exe", process.exe);
        out.member("command_line", process.command_line);
        out.member("cgroup", process.cgroup);
        out.member("container_id", process.container_id);
        out.member("pod_uid", parse_cgroup_path(process.cgroup).pod_uid);
        out.end_object();
    }
    out.end_array();
}

void put_metadata(BoundedJson& out, const Store& store, const Filter& filter, const JsonOptions& options) {
    out.object("metadata");
    if (!options.name.empty()) out.member("name", options.name);
    if (!options.tags.empty()) {
        out.object("tags");
        for (const auto& [key, value] : options.tags) out.member(key, value);
        out.end_object();
    }
    if (store.recording()) put_recording(out, *store.recording());
    out.member("start_ns", store.first_ns());
    out.member("end_ns", store.end_ns());
    out.member("samples", store.total(0).samples);
    put_processes(out, store, filter);
    put_unwind_processes(out, store);
    out.array("losses");
    for (const LossTotal& loss : store.losses()) {
        out.object();
        out.member("reason", static_cast<std::uint64_t>(loss.reason));
        out.member("count", loss.count);
        if (loss.event != 0) out.member("event", store.events()[loss.event].name);
        out.member("by_store", loss.by_store);
        out.end_object();
    }
    out.end_array();
    out.end_object();
}

void put_functions(BoundedJson& out, const Store& store, const Filter& filter) {
    out.array("functions");
    for (const FunctionRow& row : functions(store, filter)) {
        if (out.full()) break;
        out.object();
        put_function(out, store, row.function);
        if (row.function.file != 0) out.member("file", store.string(row.function.file));
        if (row.function.line != 0) out.member("line", row.function.line);
        out.member("self_samples", row.self.samples);
        out.member("self_weight", row.self.weight);
        out.member("samples", row.total.samples);
        out.member("weight", row.total.weight);
        out.end_object();
    }
    out.end_array();
}

// Writes nested objects from a list of children and an explicit stack, so that deep profiles cannot overflow the call
// stack.
void put_flame_graph(BoundedJson& out, const Store& store, const CallTree& tree) {
    // The children of a node are adjacent (breadth-first order), so two indices describe them all.
    std::vector<std::uint32_t> first_child(tree.nodes.size()), child_end(tree.nodes.size());
    for (std::uint32_t i = 1; i < tree.nodes.size(); ++i) {
        const std::uint32_t parent = tree.nodes[i].parent;
        if (child_end[parent] == 0) first_child[parent] = i;
        child_end[parent] = i + 1;
    }
    const auto open = [&](std::uint32_t i) {
        const CallTree::Node& node = tree.nodes[i];
        out.object();
        if (i == 0)
            out.member("name", "root");
        else
            put_function(out, store, tree.functions[node.function]);
        out.member("value", node.total.samples);
        out.member("weight", node.total.weight);
        out.member("self", node.self.samples);
        out.member("self_weight", node.self.weight);
        out.array("children");
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
            out.end_array();
            out.end_object();
            path.pop_back();
        }
    }
}

}  // namespace

std::string_view kind_name(FrameKind kind) {
    switch (kind) {
        case FrameKind::user: return "user";
        case FrameKind::kernel: return "kernel";
        case FrameKind::jit: return "jit";
        case FrameKind::inlined: return "inlined";
        case FrameKind::unknown: break;
    }
    return "unknown";
}

Result<std::string> json(const Store& store, const Filter& filter, const JsonOptions& options) {
    BoundedText text(options.max_bytes);
    BoundedJson out(text);
    out.object();
    put_metadata(out, store, filter, options);
    out.array("events");
    for (const EventId event : events_of(store, filter)) {
        Filter one = filter;
        one.event = event;
        if (out.full()) break;
        const CallTree tree = call_tree(store, one);
        out.object();
        out.member("name", store.events()[event].name);
        out.member("unit", store.events()[event].unit);
        out.member("samples", tree.total.samples);
        out.member("weight", tree.total.weight);
        put_functions(out, store, one);
        out.key("flamegraph");
        put_flame_graph(out, store, tree);
        out.end_object();
    }
    out.end_array();
    out.end_object();
    return text.take("JSON");
}

}  // namespace flamewire::profile
