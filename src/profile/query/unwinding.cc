#include "profile/query/unwinding.h"

#include <algorithm>

namespace flamewire::profile {
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

}  // namespace

std::string_view mode_name(wire::StackMode mode) {
    switch (mode) {
        case wire::StackMode::fp: return "fp";
        case wire::StackMode::hybrid: return "hybrid";
        case wire::StackMode::dwarf: return "dwarf";
        case wire::StackMode::lbr: break;
    }
    return "lbr";
}

Unwinding unwinding_of(const Store& store) {
    Unwinding unwinding;
    if (const auto& recording = store.recording()) {
        unwinding.mode = recording->unwind;
        unwinding.stack_bytes = recording->stack_bytes;
        unwinding.max_depth = recording->max_depth;
    }
    std::vector<const Process*> with_stacks;
    for (const ProcessId id : store.processes_with_stacks()) {
        const Process& process = store.processes()[id];
        with_stacks.push_back(&process);
        add(unwinding.total, counts_of(*process.unwind));
    }
    unwinding.process_count = with_stacks.size();
    const auto listed =
        with_stacks.begin() + static_cast<std::ptrdiff_t>(std::min(with_stacks.size(), Unwinding::most_processes));
    const auto more_samples = [](const Process* a, const Process* b) {
        return a->unwind->samples != b->unwind->samples ? a->unwind->samples > b->unwind->samples
                                                        : a->wire.pid < b->wire.pid;
    };
    std::partial_sort(with_stacks.begin(), listed, with_stacks.end(), more_samples);
    for (auto at = with_stacks.begin(); at != listed; ++at) {
        const Process& process = **at;
        unwinding.processes.push_back({process.wire.pid, std::string(process.comm),
                                       std::string(mode_name(process.unwind->mode)), process.unwind->why,
                                       counts_of(*process.unwind)});
    }
    return unwinding;
}

}  // namespace flamewire::profile
