// From targets to open events: rings, threads found and born meanwhile, and the switch of sampling.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "agent/perf/open_error.h"
#include "agent/perf/pmu.h"
#include "agent/perf/thread_event_set.h"
#include "agent/perf/threads.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

// Scans for threads while attaching end after this, even when the target makes threads faster than they are opened.
constexpr std::uint64_t max_discovery_ns = 500'000'000;
// A clone() that began before its thread was opened has ended by then, so no FORK is doubtful any more.
constexpr std::uint64_t clone_ns = 1'000'000'000;

void raise_open_files_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

void ThreadEventSet::say(std::string code, std::string text, std::string remedy) {
    if (std::find(said_.begin(), said_.end(), code) != said_.end()) return;
    said_.push_back(code);
    notices_.push_back({std::move(code), std::move(text), std::move(remedy)});
}

Result<bool> ThreadEventSet::attach() {
    if (options_.targets.empty()) return fail(ErrorCode::invalid, "no process to sample");
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
            fmt::format("{} threads are not watched: the limit of open files is too low.", skipped_threads_),
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
    return sample_layout(mode, part, {options_.stack_bytes, options_.hybrid_stack_bytes, options_.sample_stack_pointer},
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
            demand.sample_bytes =
                std::max(demand.sample_bytes, planned_sample_bytes(layout_of(watched.target.mode, spec.parts.front())));
    }
    if (!known) demand.samples_per_second = 0;
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    if (pages > 0)
        demand.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return demand;
}

Result<bool> ThreadEventSet::open_rings() {
    const std::vector<std::uint32_t> cpus = online_cpus(real_sysfs());
    RingDemand demand = ring_demand();
    demand.cpus = cpus.size();
    const std::uint64_t page_size = kernel_.page_size;
    RingPages pages = ring_pages_for(demand, page_size);
    if (options_.ring_pages > 0) pages.sample = std::bit_floor(options_.ring_pages);
    if (options_.choice.events.empty()) pages.sample = 1;
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
        return std::unexpected(open_error(
            {open_failure_, options_.choice.events.empty() ? std::string_view() : options_.choice.events.front().name,
             pid, capabilities_.paranoid}));
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
int ThreadEventSet::open_sample(std::uint32_t event, const EventPart& part, const Found& found, std::uint32_t cpu_index,
                                std::uint32_t set) {
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

Result<std::unique_ptr<EventSet>> EventSet::open(const EventSetOptions& options, const Capabilities& capabilities,
                                                 const Kernel& kernel) {
    auto set = std::make_unique<ThreadEventSet>(options, capabilities, kernel);
    (void)TRY(set->attach());
    return set;
}

}  // namespace flamewire::agent
