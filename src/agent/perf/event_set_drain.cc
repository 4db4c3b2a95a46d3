// Turns rings into records: merges by time, decodes each record with its event's layout, drops copies, counts losses.
#include <algorithm>
#include <array>
#include <numeric>

#include "agent/perf/ring_event_set.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t gone_check_ns = 1'000'000'000;

}  // namespace

void RingEventSet::drain(RecordSink& sink, std::uint64_t until_ns) {
    // The clock must be read before the heads: see merge.h.
    const std::uint64_t now = monotonic_ns();
    rings_->load_heads();
    drained_ns_ = std::min(until_ns, now - merge_slack_ns);
    deliver(sink, drained_ns_);
    if (now >= next_gone_check_ns_ || check_soon_) check_targets();
}

void RingEventSet::drain_rest(RecordSink& sink) {
    rings_->load_heads();
    drained_ns_ = release_everything;
    deliver(sink, release_everything);
    check_targets();
    report_remaining_loss(samples_, false, sink);
    report_remaining_loss(sideband_, true, sink);
}

void RingEventSet::check_targets() {
    check_soon_ = false;
    next_gone_check_ns_ = monotonic_ns() + gone_check_ns;
    gone_ = poll_targets();
}

void RingEventSet::deliver(RecordSink& sink, std::uint64_t limit_ns) {
    merge_.begin(rings_->cursors(), limit_ns);
    MergedRecord merged;
    while (merge_.next(merged)) {
        deliver(merged, sink);
        rings_->release(merged.ring, false);
    }
    std::uint64_t broken = 0;
    for (std::size_t ring = 0; ring < rings_->cursors().size(); ++ring) {
        rings_->release(ring, true);
        broken += rings_->cursors()[ring].broken;
    }
    if (broken > broken_) notify("ring-broken", "A ring buffer had invalid perf records; its content is lost.");
    broken_ = broken;

    after_round();
    if (apply_until_ns_ > 0) {
        (void)apply_sampling();
        if (monotonic_ns() > apply_until_ns_) apply_until_ns_ = 0;
    }
}

// Copies. If several software events count the same thing, such as a switch, Linux since 6.2 reuses the first event's
// common sample data for the others (kernel/events/core.c, do_perf_sw_event and perf_sample_data::sample_flags),
// including the id. So all of their samples have the first event's id and the same time stamp. The second sample
// belongs to the next event that counts the same, in a circle; after a full circle it is a copy by another set of this
// thread. If neither is possible, equal times are only due to a coarse clock.
OpenEvent* RingEventSet::writer_of(Bytes sample, bool& is_copy) {
    is_copy = false;
    const std::uint64_t id = sample_id(sample);
    OpenEvent* first = id != 0 ? find(id) : nullptr;
    if (first == nullptr) {
        if (id != 0)
            notify(
                "foreign-ids",
                "Another profiler takes samples of the same events; some of ours have the id of its event and are left "
                "out.",
                "stop the other one");
        return nullptr;
    }
    if (!first->shares_ids || (!several_sets_ && &samples_[first->next_alike] == first)) return first;
    const std::uint64_t time_ns = record_time(sample);
    const std::uint32_t tid = sample_tid(sample);
    if (time_ns != first->last_ns || tid != first->last_tid) {
        first->last_ns = time_ns;
        first->last_tid = tid;
        first->same_time_samples = 0;
        return first;
    }
    OpenEvent* writer = first;
    for (std::uint32_t step = ++first->same_time_samples; step > 0; --step) {
        writer = &samples_[writer->next_alike];
        is_copy = is_copy || writer == first;
    }
    return writer;
}

void RingEventSet::deliver(const MergedRecord& merged, RecordSink& sink) {
    // Targets of several modes share the rings: the layout of a sample depends on its event.
    Delivery delivery{merged};
    delivery.event = writer_of(merged.bytes, delivery.is_copy);
    const SampleLayout layout = delivery.event ? delivery.event->layout : SampleLayout{};
    if (decode_record(merged.bytes, layout, record_, delivery.origin) != perf::Decoded::ok) return;
    if (!std::holds_alternative<SampleRecord>(record_)) delivery.event = find(delivery.origin.id);
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

bool RingEventSet::accept(SampleRecord& sample, const Delivery& delivery) {
    OpenEvent* event = delivery.event;
    sample.of_cpu = event && event->of_cpu;
    Classification classification = Classification::duplicate;
    // A wake-up is reported to the events of the waker, of the CPU, and of the woken thread (__perf_task in
    // include/trace/events/sched.h). The first one counts: at the next ones the thread is no longer asleep.
    if (event) classification = sample.woken_tid != 0 ? Classification::counts : classify(sample, *event);
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

bool RingEventSet::accept(const SwitchRecord& change, const Delivery& delivery) {
    return delivery.event && counts_switch(change, *delivery.event);
}

bool RingEventSet::accept(LostRecord& lost, const Delivery& delivery) {
    lost.sideband = RingSet::is_sideband(delivery.merged.ring);
    lost_records_[delivery.merged.ring] += lost.count;
    if (lost.sideband)
        on_sideband_lost();
    else
        lost_seen_ += lost.count;
    if (!capabilities_.format_lost)
        notify("loss-lower-bound",
               "This kernel does not count what it loses (Linux 6.0 does): losses after the last record of a full "
               "ring are not counted.");
    return true;
}

OpenEvent* RingEventSet::find(std::uint64_t id) {
    if (id != last_id_ || id == 0) {
        const auto found = by_id_.find(id);
        if (found == by_id_.end()) return nullptr;
        last_id_ = id;
        last_index_ = found->second;
    }
    return &samples_[last_index_];
}

std::uint64_t RingEventSet::read_lost(const OpenEvent& event) const {
    std::array<std::uint64_t, 2> values{};  // count, lost
    return kernel_.read(event.fd, values) == 2 ? values[1] : 0;
}

// Losses after the last LOST record of a ring: no later record was written that could have carried them.
void RingEventSet::report_remaining_loss(const std::vector<OpenEvent>& events, bool sideband, RecordSink& sink) {
    if (!capabilities_.format_lost) return;
    const auto cpus = rings_->cpus();
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

EventSetCounts RingEventSet::counts() {
    if (!capabilities_.format_lost) {
        counts_.samples_lost = lost_seen_;
    } else if (lost_seen_ != lost_read_at_) {
        // Each read costs an interrupt on the event's CPU, so read only after a LOST record reported new losses.
        lost_read_at_ = lost_seen_;
        counts_.samples_lost = 0;
        for (const OpenEvent& event : samples_) counts_.samples_lost += read_lost(event);
    }
    return counts_;
}

}  // namespace flamewire::agent
