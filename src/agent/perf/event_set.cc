#include "agent/perf/event_set.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>

#include "agent/perf/decode.h"
#include "agent/perf/open_error.h"
#include "agent/perf/pmu.h"
#include "agent/perf/threads.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

// Each thread has events on each CPU. Above this number of descriptors (all switched with the thread), events of whole
// CPUs cost less, although their samples of other processes are dropped.
constexpr std::size_t many_descriptors = 1'024;
constexpr std::uint64_t gone_check_ns = 1'000'000'000;

void raise_open_files_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t descriptors_by_thread(const EventSetOptions& options) {
    std::size_t threads = 0, events = 1;
    for (const Target& target : options.targets) threads += list_threads(target.pid).size();
    for (const EventSpec& spec : options.choice.events) events += spec.parts.size();
    return threads * events * online_cpus(real_sysfs()).size();
}

bool copies_stacks(const EventSetOptions& options) {
    return std::ranges::any_of(options.targets, [](const Target& target) {
        return target.mode == wire::StackMode::dwarf || target.mode == wire::StackMode::hybrid;
    });
}

// Events of whole CPUs would put the probes into all processes that use the file, and breakpoints into all processes.
bool needs_threads(const EventSetOptions& options) {
    return std::ranges::any_of(options.choice.events, [](const EventSpec& spec) {
        return std::ranges::any_of(spec.parts,
                                   [](const EventPart& part) { return part.pmu == probe_pmu || is_breakpoint(part); });
    });
}

bool is_permission(int error) { return error == EACCES || error == EPERM; }

}  // namespace

template <class Targets>
EventSet::EventSet(std::in_place_type_t<Targets> kind, const EventSetOptions& options, const Capabilities& capabilities,
                   const Kernel& kernel)
    : events_(options, capabilities, kernel, std::is_same_v<Targets, CpuTargets>), targets_(kind, events_) {}

template <class Targets>
Result<std::unique_ptr<EventSet>> EventSet::open_as(const EventSetOptions& options, const Capabilities& capabilities,
                                                    const Kernel& kernel) {
    std::unique_ptr<EventSet> set(new EventSet(std::in_place_type<Targets>, options, capabilities, kernel));
    (void)TRY(std::get<Targets>(set->targets_).attach());
    set->lost_records_.assign(set->events_.rings().cursors().size(), 0);
    set->counts_.ring_bytes = set->events_.rings().bytes();
    return set;
}

Result<std::unique_ptr<EventSet>> EventSet::open(const EventSetOptions& options, const Capabilities& capabilities,
                                                 const Kernel& kernel) {
    raise_open_files_limit();
    if (options.scope.wide) return open_as<CpuTargets>(options, capabilities, kernel);
    const bool by_cpu_possible = !options.targets.empty() && !options.enable_on_exec && !needs_threads(options);
    if (by_cpu_possible && options.prefer_whole_cpus)
        if (auto set = open_as<CpuTargets>(options, capabilities, kernel)) return set;
    // Do not copy the stacks of all processes for the sake of a few.
    if (by_cpu_possible && !copies_stacks(options) && descriptors_by_thread(options) > many_descriptors)
        if (auto set = open_as<CpuTargets>(options, capabilities, kernel)) return set;
    auto by_thread = open_as<ThreadTargets>(options, capabilities, kernel);
    const int lacking = by_thread ? (*by_thread)->lacking() : by_thread.error().errno_value;
    if (!by_cpu_possible || !(is_permission(lacking) || out_of_files(lacking))) return by_thread;
    // Threads that may not have events of their own, or are too many for that, can still be sampled by CPU.
    if (by_thread) by_thread->reset();  // frees its files
    auto by_cpu = open_as<CpuTargets>(options, capabilities, kernel);
    if (!by_cpu) return by_thread ? open_as<ThreadTargets>(options, capabilities, kernel) : std::move(by_thread);
    if (out_of_files(lacking)) std::get<CpuTargets>((*by_cpu)->targets_).notify_instead_of_threads();
    return by_cpu;
}

int EventSet::lacking() const {
    const auto* threads = std::get_if<ThreadTargets>(&targets_);
    return threads != nullptr ? threads->lacking() : 0;
}

void EventSet::drain(RecordSink& sink, std::uint64_t until_ns) {
    // The clock must be read before the heads: see merge.h.
    const std::uint64_t now = monotonic_ns();
    events_.rings().load_heads();
    drained_ns_ = std::min(until_ns, now - merge_slack_ns);
    deliver(sink, drained_ns_);
    if (now >= next_gone_check_ns_ || std::visit([](const auto& targets) { return targets.check_soon(); }, targets_))
        check_targets();
}

void EventSet::drain_rest(RecordSink& sink) {
    events_.rings().load_heads();
    drained_ns_ = release_everything;
    deliver(sink, release_everything);
    check_targets();
    report_remaining_loss(events_.samples(), false, sink);
    report_remaining_loss(events_.sideband(), true, sink);
}

void EventSet::check_targets() {
    next_gone_check_ns_ = monotonic_ns() + gone_check_ns;
    gone_ = std::visit([](auto& targets) { return targets.poll(); }, targets_);
}

void EventSet::deliver(RecordSink& sink, std::uint64_t limit_ns) {
    merge_.begin(events_.rings().cursors(), limit_ns);
    MergedRecord merged;
    while (merge_.next(merged)) {
        deliver(merged, sink);
        events_.rings().release(merged.ring, false);
    }
    std::uint64_t broken = 0;
    for (std::size_t ring = 0; ring < events_.rings().cursors().size(); ++ring) {
        events_.rings().release(ring, true);
        broken += events_.rings().cursors()[ring].broken;
    }
    if (broken > broken_) events_.notify("ring-broken", "A ring buffer had invalid perf records; its content is lost.");
    broken_ = broken;

    if (auto* threads = std::get_if<ThreadTargets>(&targets_)) threads->after_round();
    events_.repeat_sampling();
}

void EventSet::deliver(const MergedRecord& merged, RecordSink& sink) {
    // Targets of several modes share the rings: the layout of a sample depends on its event.
    perf::Origin origin;
    Delivery delivery{merged};
    delivery.event = events_.writer_of(merged.bytes, delivery.is_copy);
    static constexpr SampleLayout unknown{};
    const SampleLayout& layout = delivery.event ? delivery.event->layout : unknown;
    if (decode_record(merged.bytes, layout, record_, origin) != perf::Decoded::ok) return;
    delivery.id = origin.id;
    if (!std::holds_alternative<SampleRecord>(record_)) delivery.event = events_.find(origin.id);
    if (merged.late) ++counts_.late_records;
    const bool accepted = std::visit(
        [&](auto& record) {
            record.time_ns = merged.time_ns;
            return accept(record, delivery);
        },
        record_);
    if (!accepted) return;
    sink.on_record(record_, delivery.event ? std::optional(delivery.event->event) : std::nullopt);
}

bool EventSet::accept(SampleRecord& sample, const Delivery& delivery) {
    OpenEvent* event = delivery.event;
    sample.of_cpu = event && event->of_cpu;
    sample.at_next_instruction = event && event->at_next_instruction;
    Classification classification = Classification::duplicate;
    // A wake-up is reported to the events of the waker, of the CPU, and of the woken thread (__perf_task in
    // include/trace/events/sched.h). The first one counts: at the next ones the thread is no longer asleep.
    if (event)
        classification = sample.woken_tid != 0
                             ? Classification::counts
                             : std::visit([&](auto& targets) { return targets.classify(sample, *event); }, targets_);
    if (classification == Classification::out_of_scope) {
        counts_.discarded_stack_bytes += sample.stack.size();
        return false;
    }
    if (event) {
        event->sampled += sample.period;
        ++event->samples;
        // Whichever set's id the samples have, one of them counts.
        if (delivery.is_copy) classification = event->last_counted ? Classification::duplicate : Classification::counts;
        event->last_counted = classification == Classification::counts || (delivery.is_copy && event->last_counted);
    }
    ++counts_.samples_read;
    if (classification == Classification::duplicate) ++counts_.samples_duplicate;
    return classification == Classification::counts;
}

bool EventSet::accept(const SwitchRecord& change, const Delivery& delivery) {
    return delivery.event &&
           std::visit([&](auto& targets) { return targets.counts_switch(change, *delivery.event); }, targets_);
}

template <class Sideband>
bool EventSet::accept(const Sideband& record, const Delivery& delivery) {
    const std::size_t ring = delivery.merged.ring;
    return std::visit([&](auto& targets) { return targets.on_sideband(record, ring, delivery.id); }, targets_);
}

bool EventSet::accept(LostRecord& lost, const Delivery& delivery) {
    lost.sideband = RingSet::is_sideband(delivery.merged.ring);
    lost_records_[delivery.merged.ring] += lost.count;
    if (lost.sideband)
        std::visit([](auto& targets) { targets.on_sideband_lost(); }, targets_);
    else
        lost_seen_ += lost.count;
    if (!events_.capabilities().format_lost)
        events_.notify(
            "loss-lower-bound",
            "This kernel does not count what it loses (Linux 6.0 does): losses after the last record of a full "
            "ring are not counted.");
    return true;
}

std::uint64_t EventSet::read_lost(const OpenEvent& event) const {
    std::array<std::uint64_t, 2> values{};  // count, lost
    return events_.kernel().read(event.fd, values) == 2 ? values[1] : 0;
}

// Losses after the last LOST record of a ring: no later record was written that could have carried them.
void EventSet::report_remaining_loss(const std::vector<OpenEvent>& events, bool sideband, RecordSink& sink) {
    if (!events_.capabilities().format_lost) return;
    const auto cpus = events_.rings().cpus();
    std::vector<std::uint64_t> lost(cpus.size(), 0);
    for (const OpenEvent& event : events) lost[event.cpu_index] += read_lost(event);
    for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) {
        std::uint64_t& reported = lost_records_[2 * cpu + (sideband ? 1 : 0)];
        if (lost[cpu] <= reported) continue;
        record_ = LostRecord{0, lost[cpu] - reported, monotonic_ns(), cpus[cpu], sideband};
        reported = lost[cpu];
        sink.on_record(record_, std::nullopt);
    }
    if (sideband) return;
    counts_.samples_lost = std::accumulate(lost.begin(), lost.end(), std::uint64_t{0});
    lost_read_at_ = lost_seen_;
}

EventSetCounts EventSet::counts() {
    if (!events_.capabilities().format_lost) {
        counts_.samples_lost = lost_seen_;
    } else if (lost_seen_ != lost_read_at_) {
        // Each read costs an interrupt on the event's CPU, so read only after a LOST record reported new losses.
        lost_read_at_ = lost_seen_;
        counts_.samples_lost = 0;
        for (const OpenEvent& event : events_.samples()) counts_.samples_lost += read_lost(event);
    }
    return counts_;
}

std::vector<Unsampled> EventSet::take_unsampled(std::uint64_t now_ns) {
    auto* threads = std::get_if<ThreadTargets>(&targets_);
    return threads ? threads->take_unsampled(now_ns, drained_ns_) : std::vector<Unsampled>();
}

void EventSet::follow(const std::set<std::uint32_t>& pids) {
    if (auto* cpus = std::get_if<CpuTargets>(&targets_)) cpus->follow(pids);
}

}  // namespace flamewire::agent
