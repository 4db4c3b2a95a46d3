#include "server/session/unwinding.h"

#include <algorithm>

#include "profile/formats/json.h"

namespace flamewire::server {
namespace {

UnwindCounts counts_of(const wire::ProcessUnwind& unwind) {
    return {unwind.samples,  unwind.whole,   unwind.joined, unwind.truncated,
            unwind.open_end, unwind.stopped, unwind.frames, unwind.stack_bytes};
}

void add(UnwindCounts& sum, const UnwindCounts& counts) {
    sum.samples += counts.samples;
    sum.whole += counts.whole;
    sum.joined += counts.joined;
    sum.truncated += counts.truncated;
    sum.open_end += counts.open_end;
    sum.stopped += counts.stopped;
    sum.frames += counts.frames;
    sum.stack_bytes += counts.stack_bytes;
}

void write_counts(JsonWriter& json, const UnwindCounts& counts) {
    json.member("samples", counts.samples);
    json.member("whole", counts.whole);
    json.member("joined", counts.joined);
    json.member("truncated", counts.truncated);
    json.member("open_end", counts.open_end);
    json.member("stopped", counts.stopped);
    json.member("frames", counts.frames);
    json.member("stack_bytes", counts.stack_bytes);
}

}  // namespace

Unwinding unwinding_of(const profile::Store& store) {
    Unwinding unwinding;
    if (const auto& recording = store.recording()) {
        unwinding.mode = recording->unwind;
        unwinding.stack_bytes = recording->stack_bytes;
        unwinding.max_depth = recording->max_depth;
    }
    std::vector<const profile::Process*> with_stacks;
    for (const profile::ProcessId id : store.processes_with_stacks()) {
        const profile::Process& process = store.processes()[id];
        with_stacks.push_back(&process);
        add(unwinding.total, counts_of(*process.unwind));
    }
    unwinding.process_count = with_stacks.size();
    const auto listed =
        with_stacks.begin() + static_cast<std::ptrdiff_t>(std::min(with_stacks.size(), Unwinding::most_processes));
    const auto more_samples = [](const profile::Process* a, const profile::Process* b) {
        return a->unwind->samples != b->unwind->samples ? a->unwind->samples > b->unwind->samples
                                                        : a->wire.pid < b->wire.pid;
    };
    std::partial_sort(with_stacks.begin(), listed, with_stacks.end(), more_samples);
    for (auto at = with_stacks.begin(); at != listed; ++at) {
        const profile::Process& process = **at;
        unwinding.processes.push_back({process.wire.pid, std::string(process.comm),
                                       std::string(profile::mode_name(process.unwind->mode)), process.unwind->why,
                                       counts_of(*process.unwind)});
    }
    return unwinding;
}

void write_unwinding(JsonWriter& json, const Unwinding& unwinding) {
    json.member("unwind", unwinding.mode);
    json.member("stack_bytes", unwinding.stack_bytes);
    json.member("max_depth", unwinding.max_depth);
    json.key("unwind_totals");
    json.object();
    json.member("processes", unwinding.process_count);
    write_counts(json, unwinding.total);
    json.end_object();
}

void write_unwind_processes(JsonWriter& json, const Unwinding& unwinding) {
    json.list("unwind_processes", unwinding.processes, [&](const UnwindProcess& process) {
        json.object();
        json.member("pid", process.pid);
        json.member("comm", process.comm);
        json.member("mode", process.mode);
        json.member("why", process.why);
        write_counts(json, process.counts);
        json.end_object();
    });
}

}  // namespace flamewire::server
