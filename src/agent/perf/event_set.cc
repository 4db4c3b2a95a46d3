#include "agent/perf/event_set.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <unordered_map>

#include "agent/perf/attr.h"
#include "agent/perf/decode.h"
#include "agent/perf/merge.h"
#include "agent/perf/open_error.h"
#include "agent/perf/owners.h"
#include "agent/perf/pmu.h"
#include "agent/perf/ring_set.h"
#include "agent/perf/threads.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

// Scans for threads while attaching end after this, even when the target makes threads faster than they are opened.
constexpr std::uint64_t max_discovery_ns = 500'000'000;
// A clone() that began before its thread was opened has ended by then, so no FORK is doubtful any more.
constexpr std::uint64_t clone_ns = 1'000'000'000;
constexpr std::uint64_t gone_check_ns = 1'000'000'000;

struct Watched {
    Target target;
    std::uint64_t start_ticks = 0;
};

// One event on one (thread, CPU).
struct OpenEvent {
    int fd = -1;
    std::uint64_t id = 0;
    std::uint32_t event = 0;  // index of the spec; unused for sideband
    std::uint32_t slot = 0;   // (event, CPU), see owners.h
    std::uint32_t set = 0;    // the thread it was opened for, counted from 0
    std::uint32_t cpu_index = 0;
    SampleLayout layout = {};
};

void raise_open_files_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<std::uint32_t> online_cpus() {
    if (const auto text = real_sysfs().read("devices/system/cpu/online"))
        if (auto cpus = parse_cpu_list(*text); cpus && !cpus->empty()) return *std::move(cpus);
    std::vector<std::uint32_t> cpus(static_cast<std::size_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L)));
    std::iota(cpus.begin(), cpus.end(), 0U);
    return cpus;
}

bool target_gone(const Watched& watched) {
    const auto state = read_process_state(watched.target.pid);
    if (!state || state->start_ticks != watched.start_ticks) return true;
    // The first thread of a process may be a zombie while others run.
    return (state->state == 'Z' || state->state == 'X') && state->threads <= 1;
}

class ThreadEventSet final : public EventSet {
public:
    ThreadEventSet(const EventSetOptions& options, const Capabilities& capabilities, const Kernel& kernel)
        : options_(options),
          capabilities_(capabilities),
          kernel_(kernel),
          sampling_(!options.start_disabled && !options.enable_on_exec),
          exec_awaited_(options.enable_on_exec) {}
    ~ThreadEventSet() override {
        for (const auto* list : {&samples_, &sideband_})
            for (const OpenEvent& event : *list) kernel_.close(event.fd);
    }
    ThreadEventSet(const ThreadEventSet&) = delete;
    ThreadEventSet& operator=(const ThreadEventSet&) = delete;

    Result<bool> attach();

    Result<bool> enable() override { return set_sampling(true); }
    Result<bool> disable() override { return set_sampling(false); }
    void wait(std::chrono::milliseconds timeout, int wake_fd) override { rings_->wait(timeout, wake_fd); }
    void drain(RecordSink& sink, bool final) override;
    [[nodiscard]] std::uint32_t event_of(std::uint64_t id) const override {
        const OpenEvent* event = find(id);
        return event ? event->event : 0;
    }
    [[nodiscard]] EventSetCounts counts() override;
    [[nodiscard]] bool targets_gone() const override { return gone_; }
    std::vector<wire::Notice> take_notices() override { return std::exchange(notices_, {}); }

private:
    enum class Opened { whole, thread_gone, no_more_files, refused };
    // A thread to open.
    struct Found {
        std::uint32_t tid = 0;
        wire::StackMode mode = wire::StackMode::fp;
    };

    Result<bool> open_rings();
    Result<bool> discover();
    Opened open_thread(const Found& found);
    int open_event(perf_event_attr attr, std::uint32_t tid, std::size_t ring, OpenEvent& out);
    int open_sample(std::uint32_t event, const EventPart& part, const Found& found, std::uint32_t cpu_index,
                    std::uint32_t set);
    Result<bool> open_found(const Found& found);
    void learn_forks(std::vector<Found>& to_open);
    [[nodiscard]] Found found_by(const TaskRecord& fork);
    [[nodiscard]] SampleLayout layout_of(wire::StackMode mode, const EventPart& part) const;
    [[nodiscard]] RingDemand ring_demand() const;
    Result<bool> set_sampling(bool on);
    Result<bool> apply_sampling();

    void deliver(const MergedRecord& merged, RecordSink& sink);
    void on_sideband(const MergedRecord& merged);
    [[nodiscard]] const OpenEvent* find(std::uint64_t id) const;
    void open_late_threads();
    std::uint64_t read_lost(const OpenEvent& event) const;
    void report_remaining_loss(const std::vector<OpenEvent>& events, bool sideband, RecordSink& sink);
    void check_targets();
    void say_limits();
    void say(std::string code, std::string text, std::string remedy = {});

    EventSetOptions options_;
    Capabilities capabilities_;
    Kernel kernel_;
    bool sampling_;      // as enable() and disable() said last
    bool exec_awaited_;  // it will turn sampling on
    std::uint64_t apply_until_ns_ = 0;
    std::vector<Watched> targets_;
    std::unordered_map<std::uint32_t, wire::StackMode> modes_;  // of targets, and of their children while we attach
    std::unique_ptr<RingSet> rings_;
    std::vector<OpenEvent> samples_, sideband_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_id_;  // into samples_
    mutable std::uint64_t last_id_ = 0;                       // the id that find() saw last, …
    mutable std::uint32_t last_index_ = 0;                    // … and its answer
    std::uint32_t sets_ = 0;                                  // begun
    std::uint32_t whole_sets_ = 0;                            // of these, opened completely
    int open_failure_ = 0;
    std::uint32_t skipped_threads_ = 0;

    Coverage coverage_;
    std::uint64_t attach_until_ns_ = 0;
    std::vector<std::uint64_t> learned_;  // of each ring: forks before this position are known to coverage_
    std::vector<Found> late_threads_;

    Merge merge_;
    ThreadOwners owners_;
    std::vector<SidebandCopies> copies_;  // of each ring
    Record record_;
    EventSetCounts counts_;
    std::vector<std::uint64_t> lost_records_;  // of each ring, the sum of its LOST records
    std::uint64_t lost_seen_ = 0, lost_read_at_ = 0;
    std::uint64_t broken_ = 0;
    bool exit_seen_ = false, gone_ = false;
    std::uint64_t next_gone_check_ns_ = 0;
    std::vector<wire::Notice> notices_;
};

void ThreadEventSet::say(std::string code, std::string text, std::string remedy) {
    const bool said =
        std::any_of(notices_.begin(), notices_.end(), [&](const auto& notice) { return notice.code == code; });
    if (!said) notices_.push_back({std::move(code), std::move(text), std::move(remedy)});
}

// ---- attach
// ----------------------------------------------------------------------------------------------------------------------------

Result<bool> ThreadEventSet::attach() {
    if (options_.targets.empty()) return fail(ErrorCode::invalid, "no process to sample");
    if (options_.choice.events.empty()) return fail(ErrorCode::invalid, "no event to sample");
    for (const Target& target : options_.targets) {
        (void)TRY(check_unwind_here(name_of(target.mode), capabilities_));
        const auto state = read_process_state(target.pid);
        if (!state) return fail(ErrorCode::not_found, fmt::format("process {} does not exist", target.pid));
        targets_.push_back({target, state->start_ticks});
        modes_[target.pid] = target.mode;
    }
    say_limits();
    raise_open_files_limit();
    (void)TRY(open_rings());
    (void)TRY(discover());
    if (whole_sets_ == 0)
        return fail(ErrorCode::not_found, fmt::format("process {} has exited", options_.targets.front().pid));
    if (skipped_threads_ > 0)
        say("threads-skipped",
            fmt::format("{} threads are not sampled: the limit of open files is too low.", skipped_threads_),
            "ulimit -n 65536 before starting the agent");
    attach_until_ns_ = monotonic_ns() + clone_ns;
    return true;
}

// Everything that a person should know about what the targets' modes can do here.
void ThreadEventSet::say_limits() {
    const auto any = [this](auto condition) {
        return std::any_of(targets_.begin(), targets_.end(),
                           [&](const Watched& watched) { return condition(watched.target.mode); });
    };
    const bool by_kernel = any([](wire::StackMode mode) { return mode != wire::StackMode::dwarf; });
    if (options_.max_depth > capabilities_.max_stack && by_kernel)
        say("depth-limited",
            fmt::format("The kernel walks frame pointers for {} frames at most; {} were asked for.",
                        capabilities_.max_stack, options_.max_depth),
            fmt::format("sysctl -w kernel.perf_event_max_stack={}", options_.max_depth));
    if (!any([](wire::StackMode mode) { return mode == wire::StackMode::lbr; })) return;
    for (const EventSpec& spec : options_.choice.events)
        if (!layout_of(wire::StackMode::lbr, spec.parts.front()).branches)
            say("lbr-hardware-only",
                fmt::format("{} is no hardware event, so its stacks come from frame pointers, not from branch records.",
                            spec.name));
}

SampleLayout ThreadEventSet::layout_of(wire::StackMode mode, const EventPart& part) const {
    return sample_layout(mode, part,
                         {options_.stack_bytes, options_.hybrid_stack_bytes, options_.sample_stack_pointer},
                         capabilities_);
}

// One thread at a time runs on a CPU, and it may be of the target with the largest samples.
RingDemand ThreadEventSet::ring_demand() const {
    RingDemand demand;
    bool known = true;
    demand.sample_bytes = 0;
    for (const EventSpec& spec : options_.choice.events) {
        const std::uint32_t hz = spec.frequency_hz.value_or(options_.choice.frequency_hz);
        known = known && hz != 0;
        demand.samples_per_second += hz;
        for (const Watched& watched : targets_)
            demand.sample_bytes = std::max(
                demand.sample_bytes, planned_sample_bytes(layout_of(watched.target.mode, spec.parts.front())));
    }
    if (!known) demand.samples_per_second = 0;
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    if (pages > 0)
        demand.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return demand;
}

Result<bool> ThreadEventSet::open_rings() {
    const std::vector<std::uint32_t> cpus = online_cpus();
    RingDemand demand = ring_demand();
    demand.cpus = cpus.size();
    const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    RingPages pages = ring_pages_for(demand, page_size);
    if (options_.ring_pages > 0) pages.sample = std::bit_floor(options_.ring_pages);
    if (options_.force_one_page) pages = {1, 1};
    rings_ = TRY(RingSet::open(cpus, pages, capabilities_, kernel_));
    if (rings_->pages().sample < pages.sample)
        say("rings-halved",
            fmt::format("The sample rings have {} KiB a CPU instead of {}: the kernel's limit on locked memory.",
                        rings_->pages().sample * page_size / 1024, pages.sample * page_size / 1024),
            "sysctl -w kernel.perf_event_mlock_kb=4096, or setcap cap_ipc_lock+ep flamewire-agent");
    const std::size_t count = rings_->cursors().size();
    learned_.assign(count, 0);
    lost_records_.assign(count, 0);
    copies_.resize(count);
    for (std::size_t ring = 0; ring < count; ++ring) learned_[ring] = rings_->cursors()[ring].tail;
    counts_.ring_bytes = rings_->bytes();
    return true;
}

// Scan, learn what was born meanwhile, open what is not covered: until two scans in a row bring nothing (one alone can
// skip a thread that moves up in the list while others exit). The forks are read after the scan, so that a thread it
// found has its record by then.
Result<bool> ThreadEventSet::discover() {
    const std::uint64_t end = monotonic_ns() + max_discovery_ns;
    std::vector<Found> found;
    for (int quiet_scans = 0; quiet_scans < 2;) {
        found.clear();
        for (const Watched& watched : targets_)
            for (const std::uint32_t tid : list_threads(watched.target.pid))
                found.push_back({tid, watched.target.mode});
        learn_forks(found);
        bool opened = false;
        for (const Found& one : found) {
            if (coverage_.known(one.tid)) continue;
            (void)TRY(open_found(one));
            opened = true;
        }
        quiet_scans = opened ? 0 : quiet_scans + 1;
        if (monotonic_ns() > end) {
            say("attach-busy",
                "The target creates threads faster than they can be opened; some that began during the start may be "
                "missing.");
            break;
        }
    }
    return true;
}

// An error only when the process as a whole may not be opened.
Result<bool> ThreadEventSet::open_found(const Found& found) {
    const Opened opened = open_thread(found);
    if (opened == Opened::whole) {
        coverage_.opened(found.tid, monotonic_ns());
        return true;
    }
    coverage_.skipped(found.tid);
    if (opened == Opened::thread_gone) return true;
    if (whole_sets_ == 0) {
        const std::uint32_t pid = targets_.size() == 1 ? targets_.front().target.pid : found.tid;
        return std::unexpected(
            open_error({open_failure_, options_.choice.events.front().name, pid, capabilities_.paranoid}));
    }
    ++skipped_threads_;
    return true;
}

// FORK and EXIT records that arrived since the last call, from all sideband rings, without consuming them. Children
// that must be opened are added to `to_open`.
void ThreadEventSet::learn_forks(std::vector<Found>& to_open) {
    std::vector<TaskRecord> tasks;
    rings_->load_heads();
    const auto cursors = rings_->cursors();
    for (std::size_t ring = 1; ring < cursors.size(); ring += 2) {
        RingCursor scan = cursors[ring];
        scan.tail = learned_[ring];
        for (Bytes bytes = scan.peek(); !bytes.empty(); bytes = scan.peek()) {
            RecordOrigin origin;
            if (decode_record(bytes, {}, record_, origin) == Decoded::ok)
                if (const auto* task = std::get_if<TaskRecord>(&record_)) tasks.push_back(*task);
            scan.pop(bytes.size());
        }
        learned_[ring] = scan.tail;
    }
    std::sort(tasks.begin(), tasks.end(), [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
    for (const TaskRecord& task : tasks) {
        if (task.exit)
            coverage_.exited(task.tid);
        else if (const Found child = found_by(task); coverage_.forked(task.parent_tid, task.tid, task.time_ns))
            to_open.push_back(child);
    }
}

// The child of a FORK record, with its process's mode; a new process has its parent's, as it has its parent's events.
ThreadEventSet::Found ThreadEventSet::found_by(const TaskRecord& fork) {
    const auto parent = modes_.find(fork.parent_pid);
    const wire::StackMode inherited = parent != modes_.end() ? parent->second : targets_.front().target.mode;
    return {fork.tid, modes_.try_emplace(fork.pid, inherited).first->second};
}

// Sideband first, so that no sample comes from a child whose FORK was not recorded. What was opened stays open also
// when the rest fails: owners make use of parts.
ThreadEventSet::Opened ThreadEventSet::open_thread(const Found& found) {
    const auto verdict = [this](int error) {
        open_failure_ = error;
        if (error == ESRCH) return Opened::thread_gone;
        return error == EMFILE || error == ENFILE ? Opened::no_more_files : Opened::refused;
    };
    const std::uint32_t set = sets_++;
    const auto cpus = rings_->cpus();
    for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) {
        OpenEvent event;
        const int error = open_event(sideband_attr(capabilities_), found.tid, 2 * cpu + 1, event);
        if (error != 0) return verdict(error);
        sideband_.push_back(event);
    }
    for (std::uint32_t cpu = 0; cpu < cpus.size(); ++cpu)
        for (std::uint32_t event = 0; event < options_.choice.events.size(); ++event)
            for (const EventPart& part : options_.choice.events[event].parts) {
                const bool here =
                    part.cpus.empty() || std::binary_search(part.cpus.begin(), part.cpus.end(), cpus[cpu]);
                const int error = here ? open_sample(event, part, found, cpu, set) : 0;
                if (error != 0) return verdict(error);
            }
    ++whole_sets_;
    return Opened::whole;
}

// errno, 0 when it worked.
int ThreadEventSet::open_sample(std::uint32_t event, const EventPart& part, const Found& found,
                                std::uint32_t cpu_index, std::uint32_t set) {
    EventChoice& choice = options_.choice;
    const SampleAttrOptions attr_options{.frequency_hz = choice.frequency_hz,
                                         .period = choice.period,
                                         .kernel = choice.kernel,
                                         .disabled = !sampling_,
                                         .enable_on_exec = exec_awaited_,
                                         .layout = layout_of(found.mode, part)};
    perf_event_attr attr = sample_attr(choice.events[event], part, attr_options, capabilities_);
    OpenEvent opened;
    int error = open_event(attr, found.tid, 2 * std::size_t{cpu_index}, opened);
    if (error == EINVAL && attr.freq != 0) {
        // The kernel lowers the limit while it runs; a rate above it is EINVAL.
        const std::int64_t max_hz = kernel_.sysctl("perf_event_max_sample_rate").value_or(0);
        if (max_hz > 0 && attr.sample_freq > static_cast<std::uint64_t>(max_hz)) {
            say("rate-clamped",
                fmt::format("The kernel now allows {} samples a second, so {} runs at {} Hz instead of {} Hz.", max_hz,
                            choice.events[event].name, max_hz, static_cast<std::uint64_t>(attr.sample_freq)),
                "sysctl -w kernel.perf_cpu_time_max_percent=0");
            attr.sample_freq = static_cast<std::uint64_t>(max_hz);
            error = open_event(attr, found.tid, 2 * std::size_t{cpu_index}, opened);
        }
    }
    if (error != 0) return error;
    opened.event = event;
    opened.cpu_index = cpu_index;
    opened.set = set;
    opened.layout = attr_options.layout;
    opened.slot = event * static_cast<std::uint32_t>(rings_->cpus().size()) + cpu_index;
    by_id_[opened.id] = static_cast<std::uint32_t>(samples_.size());
    samples_.push_back(opened);
    return 0;
}

// Opens an event and sends its records to a ring; errno, 0 when it worked.
int ThreadEventSet::open_event(perf_event_attr attr, std::uint32_t tid, std::size_t ring, OpenEvent& out) {
    const std::size_t cpu_index = RingSet::cpu_index(ring);
    const int fd = kernel_.open(attr, static_cast<pid_t>(tid), static_cast<int>(rings_->cpus()[cpu_index]));
    if (fd < 0) return -fd;
    out.fd = fd;
    out.cpu_index = static_cast<std::uint32_t>(cpu_index);
    int answer = kernel_.ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, static_cast<unsigned long>(rings_->owner(ring)));
    if (answer >= 0) answer = kernel_.id(fd, out.id);
    if (answer >= 0) return 0;
    kernel_.close(fd);
    return -answer;
}

// A child whose clone() is under way takes the state that its parent's event had when clone() began, and is not among
// the children that the ioctl reaches. So the state is applied again for as long as a clone() may take.
Result<bool> ThreadEventSet::set_sampling(bool on) {
    sampling_ = on;
    exec_awaited_ = false;
    apply_until_ns_ = monotonic_ns() + clone_ns;
    return apply_sampling();
}

Result<bool> ThreadEventSet::apply_sampling() {
    for (const OpenEvent& event : samples_) {
        const int answer = kernel_.ioctl(event.fd, sampling_ ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
        if (answer < 0) return fail_errno("switch a perf event", -answer);
    }
    return true;
}

// ---- drain
// -----------------------------------------------------------------------------------------------------------------------------

void ThreadEventSet::drain(RecordSink& sink, bool final) {
    // In this order: see merge.h.
    const std::uint64_t now = monotonic_ns();
    rings_->load_heads();
    merge_.begin(rings_->cursors(), final ? release_everything : now - merge_slack_ns);
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
    if (broken > broken_) say("ring-broken", "A ring held bytes that are no perf records; what was in it is lost.");
    broken_ = broken;

    if (attach_until_ns_ > 0) open_late_threads();
    if (apply_until_ns_ > 0) {
        (void)apply_sampling();
        if (now > apply_until_ns_) apply_until_ns_ = 0;
    }
    if (now >= next_gone_check_ns_ || exit_seen_ || final) check_targets();
    if (!final) return;
    report_remaining_loss(samples_, false, sink);
    report_remaining_loss(sideband_, true, sink);
}

void ThreadEventSet::deliver(const MergedRecord& merged, RecordSink& sink) {
    RecordOrigin origin;
    // Targets of several modes share the rings: how a sample is laid out is its event's to say.
    const std::uint64_t id = sample_id(merged.bytes);
    const OpenEvent* event = id != 0 ? find(id) : nullptr;
    if (decode_record(merged.bytes, event ? event->layout : SampleLayout{}, record_, origin) != Decoded::ok) return;
    if (merged.late) ++counts_.late_records;
    std::visit([&](auto& record) { record.time_ns = merged.time_ns; }, record_);

    if (auto* sample = std::get_if<SampleRecord>(&record_)) {
        ++counts_.samples_read;
        // With one set there is nothing to be told apart.
        if (!event || (sets_ > 1 && !owners_.accept(sample->tid, event->slot, event->set))) {
            ++counts_.samples_duplicate;
            return;
        }
    } else if (auto* lost = std::get_if<LostRecord>(&record_)) {
        lost->sideband = RingSet::is_sideband(merged.ring);
        lost_records_[merged.ring] += lost->count;
        if (lost->sideband)
            owners_.forget_all();
        else
            lost_seen_ += lost->count;
    } else if (!std::holds_alternative<ThrottleRecord>(record_)) {
        if (copies_[merged.ring].is_copy(record_, origin)) return;
        on_sideband(merged);
    }
    sink.on_record(record_);
}

void ThreadEventSet::on_sideband(const MergedRecord& merged) {
    if (const auto* comm = std::get_if<CommRecord>(&record_)) {
        if (!comm->exec) return;
        owners_.forget(comm->tid);
        if (exec_awaited_) {
            sampling_ = true;
            exec_awaited_ = false;
        }
        return;
    }
    const auto* task = std::get_if<TaskRecord>(&record_);
    if (!task) return;
    owners_.forget(task->tid);
    if (task->exit)
        exit_seen_ = exit_seen_ || std::any_of(targets_.begin(), targets_.end(),
                                               [&](const Watched& watched) { return watched.target.pid == task->pid; });
    if (attach_until_ns_ == 0 || rings_->cursors()[merged.ring].tail < learned_[merged.ring]) return;
    if (task->exit)
        coverage_.exited(task->tid);
    else if (const Found child = found_by(*task); coverage_.forked(task->parent_tid, task->tid, task->time_ns))
        late_threads_.push_back(child);
}

const OpenEvent* ThreadEventSet::find(std::uint64_t id) const {
    if (id != last_id_ || id == 0) {
        const auto found = by_id_.find(id);
        if (found == by_id_.end()) return nullptr;
        last_id_ = id;
        last_index_ = found->second;
    }
    return &samples_[last_index_];
}

void ThreadEventSet::open_late_threads() {
    for (const Found& found : std::exchange(late_threads_, {}))
        if (!coverage_.known(found.tid)) (void)open_found(found);
    if (monotonic_ns() < attach_until_ns_) return;
    attach_until_ns_ = 0;
    coverage_.clear();
    modes_.clear();
}

void ThreadEventSet::check_targets() {
    exit_seen_ = false;
    next_gone_check_ns_ = monotonic_ns() + gone_check_ns;
    gone_ = std::all_of(targets_.begin(), targets_.end(), target_gone);
}

// ---- counts
// ----------------------------------------------------------------------------------------------------------------------------

std::uint64_t ThreadEventSet::read_lost(const OpenEvent& event) const {
    std::array<std::uint64_t, 2> values{};  // count, lost
    return kernel_.read(event.fd, values) == 2 ? values[1] : 0;
}

// What was lost after the last LOST record of a ring: nothing was written there since that could have carried it.
void ThreadEventSet::report_remaining_loss(const std::vector<OpenEvent>& events, bool sideband, RecordSink& sink) {
    if (!capabilities_.format_lost) return;
    const auto cpus = rings_->cpus();
    std::vector<std::uint64_t> lost(cpus.size(), 0);
    for (const OpenEvent& event : events) lost[event.cpu_index] += read_lost(event);
    for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) {
        std::uint64_t& told = lost_records_[2 * cpu + (sideband ? 1 : 0)];
        if (lost[cpu] <= told) continue;
        record_ = LostRecord{0, lost[cpu] - told, monotonic_ns(), cpus[cpu], sideband};
        told = lost[cpu];
        sink.on_record(record_);
    }
    if (sideband) return;
    counts_.samples_lost = std::accumulate(lost.begin(), lost.end(), std::uint64_t{0});
    lost_read_at_ = lost_seen_;
}

EventSetCounts ThreadEventSet::counts() {
    if (!capabilities_.format_lost) {
        counts_.samples_lost = lost_seen_;
    } else if (lost_seen_ != lost_read_at_) {
        // Reading costs an interrupt of the CPU for each event, so only when a LOST record says that there is something
        // new.
        lost_read_at_ = lost_seen_;
        counts_.samples_lost = 0;
        for (const OpenEvent& event : samples_) counts_.samples_lost += read_lost(event);
    }
    return counts_;
}

}  // namespace

Result<std::unique_ptr<EventSet>> EventSet::open(const EventSetOptions& options, const Capabilities& capabilities,
                                                 const Kernel& kernel) {
    auto set = std::make_unique<ThreadEventSet>(options, capabilities, kernel);
    (void)TRY(set->attach());
    return set;
}

}  // namespace flamewire::agent
