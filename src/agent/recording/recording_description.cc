#include "agent/recording/recording_description.h"

#include <utility>

#include "agent/recording/event_table.h"

namespace flamewire::agent {

OffCpuEvents RecordingDescription::begin(std::uint64_t start_ns) {
    start_ns_ = start_ns;
    FolderOptions options;
    options.recording_id = id_;
    options.max_stack = setup_.capabilities.max_stack;
    options.recording = recording();
    const OffCpuEvents off_cpu = set_events(options);
    options.stacks = stacks_.unwinding();
    folder_.begin(std::move(options));
    return off_cpu;
}

OffCpuEvents RecordingDescription::set_events(FolderOptions& options) const {
    EventTable table = make_event_table(setup_.choice);
    options.events = std::move(table.events);
    options.event_names = std::move(table.names);
    options.event_units = std::move(table.units);
    options.hits = {table.triggers, setup_.plan.settings.trace_first};
    return table.off_cpu;
}

OffCpuEvents RecordingDescription::update() {
    FolderOptions options;
    const OffCpuEvents off_cpu = set_events(options);
    folder_.change_events(recording(), std::move(options));
    return off_cpu;
}

OffCpuEvents RecordingDescription::update(std::uint64_t changed_ns, std::uint64_t gap_ns) {
    changed_ns_ = changed_ns;
    gap_ns_ = gap_ns;
    return update();
}

wire::Recording RecordingDescription::recording() const {
    const RecordingPlan& plan = setup_.plan;
    const Settings& settings = plan.settings;
    wire::Recording recording;
    recording.target = plan.target;
    recording.pids = plan.pids;
    recording.host = setup_.machine.host;
    recording.arch = setup_.machine.arch;
    recording.kernel_release = setup_.machine.kernel_release;
    recording.agent_version = FLAMEWIRE_VERSION;
    recording.boot_id = setup_.machine.boot_id;
    const bool by_frequency = settings.period == 0 && settings.samples();
    recording.frequency_hz = by_frequency ? settings.frequency_hz : 0;
    recording.period = settings.period;
    recording.effective_frequency_hz = setup_.choice.period != 0 ? 0 : setup_.choice.frequency_hz;
    recording.unwind = settings.unwind;
    recording.stack_bytes = stacks_.copies().stack_bytes();
    recording.max_depth = settings.max_depth;
    recording.kernel = setup_.choice.kernel;
    recording.interval_ms = settings.interval_ms;
    recording.start_ns = start_ns_;
    recording.page_size = setup_.machine.page_size;
    recording.cpus = setup_.machine.cpus;
    recording.changed_ns = changed_ns_;
    recording.gap_ns = gap_ns_;
    return recording;
}

Running RecordingDescription::running(const Counting* counting) const {
    const RecordingPlan& plan = setup_.plan;
    Running running;
    running.target = plan.target;
    running.recording_id = id_;
    running.pids = plan.pids;
    running.scope = plan.scope;
    running.settings = plan.settings;
    running.events = make_event_table(setup_.choice).names;
    running.effective_frequency_hz = setup_.choice.period != 0 ? 0 : setup_.choice.frequency_hz;
    running.kernel = setup_.choice.kernel;
    running.notices = setup_.choice.notices;
    if (counting != nullptr) {
        running.counters = counting->states();
        running.count_by = counting->by();
    }
    return running;
}

}  // namespace flamewire::agent
