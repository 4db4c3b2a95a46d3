#include "agent/recording/batch_producer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/process/proc_text.h"
#include "base/clock.h"
#include "base/system.h"

namespace flamewire::agent {
namespace {

// Interval of batches while nothing happens on the target, as a sign of life for the server.
constexpr std::uint64_t heartbeat_ns = 1'000'000'000;

}  // namespace

void BatchProducer::begin(std::uint64_t start_ns, std::uint64_t first_ns) {
    last_ns_ = start_ns;
    due_ns_ = start_ns + std::min(interval_ns(), first_ns);
}

void BatchProducer::change_interval() { due_ns_ = std::min(due_ns_, monotonic_ns() + interval_ns()); }

std::uint64_t BatchProducer::interval_ns() const {
    return parts_.setup.plan.settings.interval_ms * std::uint64_t{1'000'000};
}

void BatchProducer::produce(std::uint64_t now_ns) {
    due_ns_ = now_ns + interval_ns();
    parts_.kernel_names.begin_if_due(now_ns);
    gather(now_ns);
    if (mailbox_.take_epoch()) {
        (void)System::current().input(inputs::epoch, "begun");
        parts_.folder.begin_epoch();
    }
    const bool room = outbox_.push();
    const bool too_many = parts_.batch.full();
    const bool due = parts_.batch.has_content() || now_ns - last_ns_ >= heartbeat_ns;
    if ((room && due) || too_many) {
        std::unique_ptr<ClosedBatch> next(new ClosedBatch{parts_.folder.close_batch(), parts_.folder.periods()});
        parts_.batch.begin();
        next->batch.agent = own_cost();
        if (!room) {
            // The link has not accepted anything for half a million samples. Drop the rows, but keep the tables, which
            // later batches need.
            const std::uint64_t given_up = next->samples();
            next->batch.rows.clear();
            next->batch.losses.push_back({wire::LossReason::queue_full, given_up, last_ns_, now_ns, 0, 0});
            parts_.snapshot.add_dropped(given_up);
        }
        last_ns_ = now_ns;
        outbox_.add(std::move(next));
        (void)outbox_.push();
    }
}

void BatchProducer::gather(std::uint64_t now_ns) {
    counts_ = parts_.events.counts();
    if (counts_.samples_lost > lost_reported_) {
        parts_.folder.samples_lost();
        parts_.batch.add_loss(
            {wire::LossReason::ring_full, counts_.samples_lost - lost_reported_, last_ns_, now_ns, 0, 0});
        lost_reported_ = counts_.samples_lost;
    }
    for (const wire::Loss& loss : parts_.processes.take_losses()) parts_.batch.add_loss(loss);
    parts_.batch.add_symbols(parts_.processes.take_jit_symbols());
    if (const std::uint32_t pid = parts_.folder.process_of_costly_tables();
        pid != 0 && !std::exchange(costly_tables_notified_, true))
        parts_.batch.add_notice(
            "costly-tables",
            fmt::format("The unwind tables of process {} take too long to read: some of its stacks end early.", pid),
            "--unwind fp reads none");
    parts_.batch.add_notices(parts_.events.current().take_notices());
    parts_.batch.add_notices(parts_.processes.take_notices());
    parts_.batch.add_notices(parts_.counters.counting().take_notices());
}

wire::AgentStats BatchProducer::own_cost() const {
    const BatchSink::Backlog backlog = outbox_.backlog();
    wire::AgentStats stats;
    stats.cpu_ns = process_cpu_ns();
    const std::string resident = System::current().input(inputs::resident_bytes, std::to_string(memory_.bytes()));
    std::string_view resident_digits = resident;
    stats.rss_bytes = take_number(resident_digits, 10).value_or(0);
    stats.ring_bytes = counts_.ring_bytes;
    stats.samples_read = counts_.samples_read;
    stats.samples_duplicate = counts_.samples_duplicate;
    stats.samples_lost = counts_.samples_lost;
    stats.late_records = static_cast<std::uint32_t>(std::min<std::uint64_t>(counts_.late_records, UINT32_MAX));
    stats.queue_batches = backlog.queue_batches;
    stats.spool_bytes = backlog.spool_bytes;
    return stats;
}

void BatchProducer::produce_last() {
    const std::uint64_t now = monotonic_ns();
    gather(now);
    std::unique_ptr<ClosedBatch> last(new ClosedBatch{parts_.folder.close_batch(true), parts_.folder.periods()});
    last->batch.agent = own_cost();
    last->batch.end = mailbox_.end_of_recording();
    outbox_.add(std::move(last));
    outbox_.push_last(now);
    parts_.snapshot.list_processes_next();
    publish();
}

void BatchProducer::publish() {
    parts_.snapshot.update(counts_, lost_reported_, parts_.counters.counting(), parts_.members.pids(), parts_.folder);
}

}  // namespace flamewire::agent
