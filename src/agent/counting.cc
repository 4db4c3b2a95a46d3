#include "agent/counting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/perf/event_probe.h"
#include "base/clock.h"

namespace flamewire::agent {

Result<std::unique_ptr<Counting>> Counting::open(const CountingPlan& plan, const Capabilities& capabilities,
                                                 const Kernel& kernel) {
    std::unique_ptr<Counting> counting(new Counting(kernel));
    (void)TRY(counting->open_total(plan, capabilities));
    return counting;
}

Result<bool> Counting::open_total(const CountingPlan& plan, const Capabilities& capabilities) {
    std::vector<Counter> counters = choose_counters(plan.wanted, plan.user_only, capabilities, kernel_);
    for (const Counter& counter : counters)
        if (counter.filter_error != 0) return std::unexpected(filter_refused(counter.spec, counter.filter_error));
    std::unique_ptr<CounterSet> set;
    if (!counters.empty()) {
        CounterSetOptions options;
        options.pids = plan.pids;
        options.scope = plan.scope;
        options.enable_on_exec = plan.enable_on_exec;
        options.start_disabled = plan.start_disabled;
        // The set refers to the vector's elements, whose addresses do not change when the vector is moved.
        set = TRY(CounterSet::open(options, counters, kernel_));
        note_skipped(*set);
    }
    detail_ = {};
    total_.set = std::move(set);
    counters_ = std::move(counters);
    pids_ = plan.pids;
    scope_ = plan.scope;
    total_.start_ns = monotonic_ns();
    next_ns_ = total_.start_ns + counter_interval_ns;
    statuses_.clear();
    sum_of_.clear();
    for (const Counter& counter : counters_) {
        statuses_.push_back(counter.status);
        const auto known = std::ranges::find_if(totals_.sums, [&](const counters::Sum& sum) {
            return sum.name == counter.name && sum.part == counter.part;
        });
        sum_of_.push_back(static_cast<std::size_t>(known - totals_.sums.begin()));
        if (known == totals_.sums.end())
            totals_.sums.push_back({counter.name, counter.unit, counter.part, counter.status, 0, 0, 0});
    }
    return true;
}

void Counting::note_skipped(const CounterSet& set) {
    if (set.threads_skipped() == 0 || std::exchange(skipped_notified_, true)) return;
    notices_.push_back(
        {"counters-skipped",
         fmt::format("{} threads are not counted: the limit of open files is too low.", set.threads_skipped()),
         "ulimit -n 65536 before starting the agent"});
}

Result<bool> Counting::replace(const CountingPlan& plan, const Capabilities& capabilities, Folder& folder) {
    if (!paused_) (void)read(folder);
    skipped_notified_ = false;
    (void)TRY(open_total(plan, capabilities));
    total_.after_gap = true;
    CountBy by = std::exchange(by_, CountBy::total);
    // The threads of a wide target are not counted individually.
    if (plan.scope.wide && by == CountBy::thread) by = CountBy::total;
    return count_by(by, plan.pids, folder);
}

Result<bool> Counting::count_by(CountBy by, const std::vector<std::uint32_t>& pids, Folder& folder) {
    if (by == by_) return true;
    if (!paused_ && detail_.set) (void)read_scope(detail_, folder);
    Part detail;
    if (by != CountBy::total && !counters_.empty()) {
        CounterSetOptions options;
        options.pids = pids;
        options.scope = scope_;
        options.by = by;
        options.start_disabled = paused_;
        detail.set = TRY(CounterSet::open(options, counters_, kernel_));
        skipped_notified_ = false;
        detail.start_ns = monotonic_ns();
        detail.after_gap = true;
        note_skipped(*detail.set);
    }
    detail_ = std::move(detail);
    pids_ = pids;
    by_ = by;
    return true;
}

void Counting::on_task(const TaskRecord& task) {
    if (total_.set) total_.set->on_task(task);
    if (detail_.set) detail_.set->on_task(task);
}

void Counting::begin() { total_.start_ns = monotonic_ns(); }

Result<bool> Counting::pause(Folder& folder) {
    if (paused_) return true;
    for (Part* scope : {&total_, &detail_})
        if (scope->set) (void)TRY(scope->set->disable());
    (void)read(folder);
    paused_ = true;
    return true;
}

Result<bool> Counting::resume() {
    const std::uint64_t now = monotonic_ns();
    for (Part* scope : {&total_, &detail_}) {
        if (!scope->set) continue;
        (void)TRY(scope->set->enable());
        scope->start_ns = now;
        scope->after_gap = scope->after_gap || paused_;
    }
    next_ns_ = now + counter_interval_ns;
    paused_ = false;
    return true;
}

bool Counting::read_if_due(std::uint64_t now_ns, Folder& folder) {
    if (now_ns < next_ns_) return false;
    next_ns_ = std::max(next_ns_ + counter_interval_ns, now_ns + counter_interval_ns / 2);
    return read(folder);
}

bool Counting::read(Folder& folder) {
    if (paused_ || counters_.empty()) return false;
    const bool something = read_scope(total_, folder);
    return read_scope(detail_, folder) || something;
}

bool Counting::read_scope(Part& scope, Folder& folder) {
    if (!scope.set) return false;
    const std::uint64_t end_ns = monotonic_ns();
    std::vector<CounterDelta> deltas = scope.set->read();
    note_skipped(*scope.set);  // threads created since
    const bool something = std::ranges::any_of(
        deltas, [](const CounterDelta& delta) { return delta.value != 0 || delta.enabled_ns != 0; });
    if (&scope == &total_) {
        add_to_totals(deltas, end_ns - scope.start_ns);
    } else if (deltas.empty() && !pids_.empty()) {
        // No thread ran. A single zero shows to which scope the interval belongs.
        CounterDelta nothing;
        if (by_ == CountBy::cpu)
            nothing.cpu_plus_1 = 1;
        else
            nothing.pid = nothing.tid = pids_.front();
        nothing.status = counters_.front().status;
        deltas.push_back(nothing);
    }
    wire::CounterReading reading;
    reading.start_ns = scope.start_ns;
    reading.end_ns = end_ns;
    reading.after_gap = std::exchange(scope.after_gap, false);
    folder.add_counters(std::move(reading), counters_, deltas);
    scope.start_ns = end_ns;
    return something;
}

void Counting::add_to_totals(const std::vector<CounterDelta>& deltas, std::uint64_t elapsed_ns) {
    totals_.elapsed_ns += elapsed_ns;
    for (const CounterDelta& delta : deltas) {
        counters::Sum interval;
        interval.status = delta.status;
        interval.value = delta.value;
        interval.enabled_ns = delta.enabled_ns;
        interval.running_ns = delta.running_ns;
        counters::Sum& sum = totals_.sums[sum_of_[delta.counter]];
        counters::add(sum, interval);
        // A counter that opens but does not work gets its status from the readings.
        if (sum.enabled_ns == 0 && sum.value == 0) sum.status = delta.status;
        statuses_[delta.counter] = delta.status;
    }
}

std::vector<CounterState> Counting::states() const {
    std::vector<CounterState> states;
    states.reserve(counters_.size());
    for (std::size_t i = 0; i < counters_.size(); ++i)
        states.push_back({counters_[i].name, counters_[i].part, statuses_[i]});
    return states;
}

std::vector<wire::Notice> Counting::take_notices() { return std::exchange(notices_, {}); }

}  // namespace flamewire::agent
