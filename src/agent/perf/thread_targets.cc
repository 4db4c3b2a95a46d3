#include "agent/perf/thread_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "agent/perf/decode.h"
#include "agent/perf/pmu.h"
#include "agent/perf/threads.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

// After the first scan, attaching ends within this time, even if the target creates threads faster than they are opened.
constexpr std::uint64_t max_discovery_ns = 500'000'000;
// Opening so many threads takes a millisecond or a few.
constexpr std::size_t threads_per_call = 16;
// Whether the event is a clock, or a hardware event sampled by frequency.
bool counts_by_time(const EventSpec& spec) {
    const EventPart& part = spec.parts.front();
    if (spec.off_cpu != 0 || spec.period != 0 || part.type == PERF_TYPE_TRACEPOINT || is_breakpoint(part)) return false;
    return part.type != PERF_TYPE_SOFTWARE || is_software_clock(part);
}

// 0 for a hardware event by frequency: the kernel adapts its period.
std::uint64_t period_of(const EventChoice& choice, const EventSpec& spec, const SampleLayout& layout) {
    constexpr std::uint64_t ns_per_s = 1'000'000'000;
    const std::uint32_t hz = sampling_rate_of(spec, {choice.frequency_hz, choice.period}).frequency_hz;
    return hz != 0 && is_software_clock(spec.parts.front()) ? ns_per_s / hz : layout.fixed_period;
}

// Added to the slot of an event, for its switch records.
constexpr std::uint32_t switch_slot = std::uint32_t{1} << 31;

}  // namespace

bool target_gone(const Watched& watched) {
    const auto state = read_task_stat(watched.target.pid);
    if (!state || state->start_ticks != watched.at_first.start_ticks) return true;
    // The main thread of a process may be a zombie while others run.
    return (state->state == 'Z' || state->state == 'X') && state->threads <= 1;
}

Result<std::vector<Watched>> watch(const std::vector<Target>& targets) {
    std::vector<Watched> watched;
    for (const Target& target : targets) {
        const auto state = read_task_stat(target.pid);
        if (!state) return fail(ErrorCode::not_found, fmt::format("process {} does not exist", target.pid));
        watched.push_back({target, *state});
    }
    return watched;
}

Result<bool> ThreadTargets::attach() {
    if (events_.options().targets.empty()) return fail(ErrorCode::invalid, "no process to sample");
    std::vector<wire::StackMode> modes;
    modes.reserve(events_.options().targets.size());
    for (const Target& target : events_.options().targets) modes.push_back(target.mode);
    (void)TRY(events_.check_modes(modes));
    targets_ = TRY(watch(events_.options().targets));
    for (const Watched& watched : targets_)
        inherited_[watched.target.pid] = {watched.target.breakpoints_of(), watched.target.mode};
    (void)TRY(events_.open_rings(online_cpus(real_sysfs()), modes));
    const auto cursors = events_.rings().cursors();
    scanned_.assign(cursors.size(), 0);
    copies_.resize(cursors.size());
    for (std::size_t ring = 0; ring < cursors.size(); ++ring) scanned_[ring] = cursors[ring].tail;
    events_.prepare_wakings(true);
    discover();
    if (whole_sets_ == 0) {
        if (lacking() != 0)
            return std::unexpected(open_error(failure_of(refused_.threads > 0 ? refused_ : few_files_)));
        return fail(ErrorCode::not_found, fmt::format("process {} has exited", events_.options().targets.front().pid));
    }
    notify_missing("threads-skipped", few_files_);
    notify_missing("threads-refused", refused_);
    unsampled_at_ns_ = monotonic_ns();
    attach_until_ns_ = unsampled_at_ns_ + clone_ns;  // then no FORK is doubtful any more
    return true;
}

// Repeats: scan, read the forks, open what is not covered. Ends when two scans in a row find nothing (a single scan can
// skip a thread that moves up in the list while others exit). The forks are read after the scan, so that each thread
// found already has its record.
void ThreadTargets::discover() {
    std::uint64_t end = monotonic_ns() + max_discovery_ns;
    bool first_scan = true;
    std::vector<Found> found;
    for (int quiet_scans = 0; quiet_scans < 2;) {
        found.clear();
        for (const Watched& watched : targets_)
            for (const std::uint32_t tid : list_threads(watched.target.pid))
                found.push_back({tid, watched.target.pid, watched.target.breakpoints_of(), watched.target.mode});
        scan_forks(found);
        bool opened = false;
        for (const Found& one : found) {
            if (coverage_.known(one.tid)) continue;
            open_found(one);
            opened = true;
            if (events_.options().observer != nullptr && set_pids_.size() % threads_per_call == 0)
                events_.options().observer->while_opening();
        }
        quiet_scans = opened ? 0 : quiet_scans + 1;
        const std::uint64_t now = monotonic_ns();
        if (std::exchange(first_scan, false)) end = now + max_discovery_ns;
        if (now > end) {
            events_.notify(
                "attach-busy",
                "The target creates threads faster than they can be opened; some that began during the start may be "
                "missing.");
            break;
        }
    }
}

void ThreadTargets::open_found(const Found& found) {
    const int error = open_thread(found);
    if (error == 0) {
        // Before exec the target is stopped and not in a clone().
        coverage_.opened(found.tid, events_.exec_awaited() ? 0 : monotonic_ns());
        return;
    }
    coverage_.skipped(found.tid);
    if (error == ESRCH) return;  // the thread has exited
    Missing& missing = out_of_files(error) ? few_files_ : refused_;
    if (missing.threads++ == 0) missing = {1, found.pid, error};
}

OpenFailure ThreadTargets::failure_of(const Missing& missing) const {
    OpenFailure failure{missing.error, {}, missing.pid, events_.capabilities().paranoid};
    if (!events_.options().choice.events.empty()) failure.event = events_.options().choice.events.front().name;
    return failure;
}

void ThreadTargets::notify_missing(std::string code, const Missing& missing) {
    if (missing.threads == 0) return;
    Explanation why = explain_open_failure(failure_of(missing));
    events_.notify(std::move(code),
                   fmt::format("Threads that are not sampled: {}, because {}.", missing.threads, why.text),
                   std::move(why.remedy));
}

// Reads the FORK and EXIT records that arrived since the last call, from all sideband rings, without consuming them.
// Appends children that must be opened to `to_open`.
void ThreadTargets::scan_forks(std::vector<Found>& to_open) {
    std::vector<TaskRecord> tasks;
    Record record;
    events_.rings().load_heads();
    const auto cursors = events_.rings().cursors();
    for (std::size_t ring = 1; ring < cursors.size(); ring += 2) {
        RingCursor scan = cursors[ring];
        scan.tail = scanned_[ring];
        for (Bytes bytes = scan.peek(); !bytes.empty(); bytes = scan.peek()) {
            perf::Origin origin;
            if (decode_record(bytes, {}, record, origin) == perf::Decoded::ok)
                if (const auto* task = std::get_if<TaskRecord>(&record)) tasks.push_back(*task);
            scan.pop(bytes.size());
        }
        scanned_[ring] = scan.tail;
    }
    std::sort(tasks.begin(), tasks.end(), [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
    for (const TaskRecord& task : tasks) cover(task, to_open);
}

// The child of a FORK record, with its process's mode. A new process inherits mode and breakpoints of its parent, as it inherits
// the events.
ThreadTargets::Found ThreadTargets::found_by(const TaskRecord& fork) {
    const auto parent = inherited_.find(fork.parent_pid);
    const Target& first = targets_.front().target;
    const Inherited of_parent =
        parent != inherited_.end() ? parent->second : Inherited{first.breakpoints_of(), first.mode};
    const Inherited& own = inherited_.try_emplace(fork.pid, of_parent).first->second;
    return {fork.tid, fork.pid, own.breakpoints_of, own.mode};
}

// Returns an errno, 0 if everything was opened. Sideband events come first, so that no sample comes from a child whose
// FORK was not recorded. On failure the events opened so far stay open: ThreadOwners handles partial sets.
int ThreadTargets::open_thread(const Found& found) {
    const std::uint32_t set = events_.begin_set();
    set_pids_.push_back(found.pid);
    const RingEvents::Subject subject{.tid = static_cast<pid_t>(found.tid), .breakpoints_of = found.breakpoints_of};
    const auto cpus = static_cast<std::uint32_t>(events_.rings().cpus().size());
    int error = 0;
    for (std::uint32_t cpu = 0; cpu < cpus && error == 0; ++cpu) error = events_.open_sideband(subject, cpu);
    for (std::uint32_t cpu = 0; cpu < cpus && error == 0; ++cpu)
        error = events_.open_samples(subject, found.mode, cpu, set);
    if (error == 0) ++whole_sets_;
    return error;
}

// With a single set there are no duplicates.
Classification ThreadTargets::classify(const SampleRecord& sample, const OpenEvent& event) {
    const bool counts = !events_.several_sets() || owners_.accept(sample.tid, event.slot, event.set);
    return counts ? Classification::counts : Classification::duplicate;
}

bool ThreadTargets::counts_switch(const SwitchRecord& change, const OpenEvent& event) {
    // Switch records have their own slot: an event may report switches without taking samples.
    return !events_.several_sets() || owners_.accept(change.tid, event.slot | switch_slot, event.set);
}

bool ThreadTargets::on_sideband(const CommRecord& comm, std::size_t ring, std::uint64_t id) {
    if (copies_[ring].is_copy(comm, id)) return false;
    if (!comm.exec) return true;
    owners_.forget(comm.tid);
    events_.on_exec();
    return true;
}

bool ThreadTargets::on_sideband(const TaskRecord& task, std::size_t ring, std::uint64_t id) {
    if (copies_[ring].is_copy(task, id)) return false;
    owners_.forget(task.tid);
    if (task.exit) {
        ++exited_threads_;
        check_soon_ = check_soon_ || std::any_of(targets_.begin(), targets_.end(), [&](const Watched& watched) {
                          return watched.target.pid == task.pid;
                      });
    }
    if (attach_until_ns_ != 0 && events_.rings().cursors()[ring].tail >= scanned_[ring]) cover(task, late_threads_);
    return true;
}

// Appends a child that must be opened to `to_open`.
void ThreadTargets::cover(const TaskRecord& task, std::vector<Found>& to_open) {
    if (task.exit)
        coverage_.exited(task.tid);
    else if (const Found child = found_by(task); coverage_.forked(task.parent_tid, task.tid, task.time_ns))
        to_open.push_back(child);
}

// Opens the threads that were found late.
void ThreadTargets::after_round() {
    if (attach_until_ns_ == 0) return;
    for (const Found& found : std::exchange(late_threads_, {}))
        if (!coverage_.known(found.tid)) open_found(found);
    if (monotonic_ns() < attach_until_ns_) return;
    notify_missing("threads-skipped", few_files_);
    notify_missing("threads-refused", refused_);
    attach_until_ns_ = 0;
    coverage_.clear();
    inherited_.clear();
}

// Nothing if the process has hardly run.
std::optional<ThreadTargets::CpuTime> ThreadTargets::cpu_time_of(std::uint32_t pid) {
    constexpr std::uint64_t least_ticks = 10;
    const auto target = std::ranges::find(targets_, pid, [](const Watched& watched) { return watched.target.pid; });
    CpuTime& time = cpu_times_[pid];
    const auto now = target != targets_.end() ? read_task_stat(pid) : std::nullopt;
    if (now && now->start_ticks == target->at_first.start_ticks)
        time = {now->user_ticks - target->at_first.user_ticks, now->system_ticks - target->at_first.system_ticks};
    return time.user + time.system >= least_ticks ? std::optional(time) : std::nullopt;
}

void ThreadTargets::add_all(SampleTotals& totals, std::uint64_t UnsampledAccount::Totals::* one,
                            std::uint64_t UnsampledAccount::Totals::* all) {
    std::map<std::uint32_t, std::uint64_t> by_event;
    for (const auto& [key, sum] : totals) by_event[key.first] += sum.*one;
    for (auto& [key, sum] : totals) sum.*all = by_event[key.first];
}

ThreadTargets::SampleTotals ThreadTargets::add_up_samples() const {
    SampleTotals totals;
    for (const OpenEvent& event : events_.samples()) {
        const EventSpec& spec = events_.options().choice.events[event.event];
        if (event.of_cpu || !counts_by_time(spec)) continue;
        UnsampledAccount::Totals& sum = totals[{event.event, set_pids_[event.set]}];
        sum.sampled += event.sampled;
        sum.samples += event.samples;
        sum.period = period_of(events_.options().choice, spec, event.layout);
        sum.exited_threads = exited_threads_;
    }
    add_all(totals, &UnsampledAccount::Totals::sampled, &UnsampledAccount::Totals::all_sampled);
    return totals;
}

void ThreadTargets::read_counts(SampleTotals& totals) const {
    for (const OpenEvent& event : events_.samples()) {
        const auto sum = totals.find({event.event, set_pids_[event.set]});
        std::array<std::uint64_t, 2> values{};  // count, lost
        if (event.of_cpu || sum == totals.end() || events_.kernel().read(event.fd, values) <= 0) continue;
        sum->second.counted += values[0];
        sum->second.lost_samples += values[1];
    }
}

// A clock counts in user and kernel mode, even if it is sampled in only one of them. False: the share of the sampled
// mode is unknown.
bool ThreadTargets::leave_out_other_mode(const EventSpec& spec, std::uint32_t pid, std::uint64_t& counted) {
    const bool user = !spec.exclude_user, kernel = events_.options().choice.kernel && !spec.exclude_kernel;
    if ((user && kernel) || !is_software_clock(spec.parts.front())) return true;
    const auto time = cpu_time_of(pid);
    if (time) counted = counted / (time->user + time->system) * (user ? time->user : time->system);
    return time.has_value();
}

// The count of a clock or hardware event is the sum of its samples' periods and of each thread's unfinished period.
// Reading it interrupts the CPU, so this happens only after enough threads have exited.
std::vector<Unsampled> ThreadTargets::take_unsampled(std::uint64_t now_ns, std::uint64_t drained_ns) {
    if (exited_threads_ == exited_seen_) return {};
    exited_seen_ = exited_threads_;
    SampleTotals totals = add_up_samples();
    if (std::ranges::none_of(totals, [](const auto& one) { return UnsampledAccount::matters(one.second); })) return {};
    read_counts(totals);
    const std::uint64_t elapsed_ns = std::max<std::uint64_t>(1, now_ns - std::exchange(unsampled_at_ns_, now_ns));
    const std::uint64_t undrained_ns = std::min(elapsed_ns, now_ns - std::min(now_ns, drained_ns));
    for (auto one = totals.begin(); one != totals.end();) {
        const auto [event, pid] = one->first;
        const bool known = leave_out_other_mode(events_.options().choice.events[event], pid, one->second.counted);
        one = known ? std::next(one) : totals.erase(one);
    }
    add_all(totals, &UnsampledAccount::Totals::counted, &UnsampledAccount::Totals::all_counted);
    std::vector<Unsampled> reports;
    for (const auto& [key, sum] : totals) {
        Unsampled report = unsampled_[key].update(sum, undrained_ns * 1000 / elapsed_ns);
        report.event = key.first;
        report.pid = key.second;
        reports.push_back(report);
    }
    return reports;
}

bool ThreadTargets::poll() {
    check_soon_ = false;
    return std::all_of(targets_.begin(), targets_.end(), target_gone);
}

}  // namespace flamewire::agent
