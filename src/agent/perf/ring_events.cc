#include "agent/perf/ring_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "agent/perf/decode.h"
#include "agent/perf/event_probe.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/system.h"

namespace flamewire::agent {

RingEvents::RingEvents(const EventSetOptions& options, const Capabilities& capabilities, const Kernel& kernel,
                       bool whole_cpus)
    : options_(options),
      capabilities_(capabilities),
      kernel_(kernel),
      whole_cpus_(whole_cpus),
      switch_(options.start_disabled, options.enable_on_exec) {}

RingEvents::~RingEvents() {
    for (const auto* list : {&samples_, &sideband_})
        for (const OpenEvent& event : *list)
            if (event.fd >= 0) kernel_.close(event.fd);
}

void RingEvents::notify(std::string code, std::string text, std::string remedy) {
    if (std::find(notified_.begin(), notified_.end(), code) != notified_.end()) return;
    notified_.push_back(code);
    notices_.push_back({std::move(code), std::move(text), std::move(remedy)});
}

// Adds a notice for each limitation of the modes on this machine.
Result<bool> RingEvents::check_modes(std::span<const wire::StackMode> modes) {
    for (const wire::StackMode mode : modes) (void)TRY(check_unwind_here(name_of(mode), capabilities_));
    const bool by_kernel =
        std::any_of(modes.begin(), modes.end(), [](wire::StackMode mode) { return mode != wire::StackMode::dwarf; });
    if (options_.max_depth > capabilities_.max_stack && by_kernel)
        notify("depth-limited",
               fmt::format("The kernel walks frame pointers for {} frames at most; {} were requested.",
                           capabilities_.max_stack, options_.max_depth),
               fmt::format("sysctl -w kernel.perf_event_max_stack={}", options_.max_depth));
    if (std::find(modes.begin(), modes.end(), wire::StackMode::lbr) == modes.end()) return true;
    for (const EventSpec& spec : options_.choice.events)
        if (!layout_of(wire::StackMode::lbr, spec, spec.parts.front()).branches)
            notify("lbr-hardware-only",
                   fmt::format(
                       "{} is not a hardware event, so its stacks come from frame pointers, not from branch records.",
                       spec.name));
    return true;
}

SampleLayout RingEvents::layout_of(wire::StackMode mode, const EventSpec& spec, const EventPart& part) const {
    // A mode that was not chosen for the program also samples Go programs, whose goroutine stacks are not in the copy.
    const StackOptions stacks{options_.stack_bytes, options_.hybrid_stack_bytes, options_.automatic_modes,
                              whole_cpus_ || options_.automatic_modes};
    SampleLayout layout = sample_layout(mode, spec, part, stacks, capabilities_);
    if (layout.stack_bytes == 0 || spec.off_cpu == 0 || options_.copy_at_switches) return layout;
    layout = sample_layout(wire::StackMode::fp, spec, part, stacks, capabilities_);
    layout.copy_omitted = true;
    return layout;
}

// One thread at a time runs on a CPU, and it may belong to the target with the largest samples.
RingDemand RingEvents::ring_demand(std::span<const wire::StackMode> modes) const {
    RingDemand demand;
    demand.samples_per_second = sample_rate(options_.choice);
    demand.sample_bytes = 0;
    for (const EventSpec& spec : options_.choice.events)
        for (const wire::StackMode mode : modes)
            demand.sample_bytes =
                std::max(demand.sample_bytes, planned_sample_bytes(layout_of(mode, spec, spec.parts.front())));
    System& system = System::current();
    demand.memory_bytes = system.constant(Constant::memory_pages) * system.constant(Constant::page_bytes);
    return demand;
}

Result<bool> RingEvents::open_rings(std::span<const std::uint32_t> cpus, std::span<const wire::StackMode> modes) {
    RingDemand demand = ring_demand(modes);
    demand.cpus = cpus.size();
    const std::uint64_t page_size = kernel_.page_size;
    RingPages pages = ring_pages_for(demand, page_size);
    if (options_.ring_pages > 0) pages.sample = std::bit_floor(options_.ring_pages);
    // All processes of the machine write records.
    if (whole_cpus_) pages.sideband *= 4;
    if (options_.choice.events.empty()) pages.sample = 1;
    if (options_.force_one_page) pages = {1, 1};
    rings_ = TRY(RingSet::open(cpus, pages, capabilities_, kernel_));
    if (auto halved = rings_halved(rings_->pages(), pages, page_size))
        notify(std::move(halved->code), std::move(halved->text), std::move(halved->remedy));
    // Without the privilege for whole CPUs (or on an old kernel), only the names in /proc/kallsyms are available.
    if (options_.choice.kernel)
        for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) {
            OpenEvent event;
            if (open_event(ksymbol_attr(capabilities_), {}, 2 * cpu + 1, event) != 0) break;
            sideband_.push_back(event);
        }
    return true;
}

int RingEvents::open_sideband(const Subject& subject, std::uint32_t cpu_index) {
    OpenEvent event;
    const int error =
        open_event(sideband_attr(capabilities_, subject.tid >= 0), subject, 2 * std::size_t{cpu_index} + 1, event);
    if (error == 0) sideband_.push_back(event);
    return error;
}

int RingEvents::open_samples(const Subject& subject, wire::StackMode mode, std::uint32_t cpu_index, std::uint32_t set) {
    const std::uint32_t cpu = rings_->cpus()[cpu_index];
    const std::size_t first = samples_.size();
    for (std::uint32_t event = 0; event < options_.choice.events.size(); ++event)
        for (const EventPart& part : options_.choice.events[event].parts) {
            if (part.woken_at != 0 && subject.cgroup >= 0) continue;  // prepare_wakings() opened these
            const bool of_other = process_of(part) != 0 && process_of(part) != subject.breakpoints_of;
            const bool here =
                !of_other && (part.cpus.empty() || std::binary_search(part.cpus.begin(), part.cpus.end(), cpu));
            const int error = here ? open_sample(event, part, subject, mode, cpu_index, set) : 0;
            if (error == 0) continue;
            if (part.woken_at == 0) return error;
            no_wakings();
        }
    link_alike(first);
    return 0;
}

void RingEvents::prepare_wakings(bool beside) {
    auto& events = options_.choice.events;
    // The spec with the wake-ups is the last one.
    if (events.empty() || (events.back().off_cpu & bit_of(OffCpuReason::woken_by)) == 0) return;
    // The tracepoint reports pids of the initial namespace (PROC_PID_INIT_INO), samples those of the agent's namespace.
    const auto names = file_status("/proc/self/ns/pid");
    const bool first = !names || names->inode == 0xeffffffc;
    if (!first && events.back().parts.back().woken_at != 0) {
        events.back().parts.pop_back();
        return notify("wakers-unknown",
                      "The wakers of threads are unknown: the kernel gives their ids in the host's namespace.",
                      "run the agent in the host's pid namespace (docker run --pid=host)");
    }
    const auto event = static_cast<std::uint32_t>(events.size() - 1);
    const EventPart& part = events.back().parts.back();
    int error = part.woken_at == 0 ? EACCES : 0;
    for (std::uint32_t cpu = 0; beside && error == 0 && cpu < rings_->cpus().size(); ++cpu)
        if (error = open_sample(event, part, {.wakings = true}, wire::StackMode::dwarf, cpu, 0); error == ENODEV)
            error = 0;  // a CPU that went offline meanwhile
    if (error != 0) no_wakings();
}

void RingEvents::no_wakings() {
    notify("wakers-unknown", "The kernel refuses sched:sched_waking, so the wakers of threads are unknown.",
           "setcap cap_perfmon,cap_sys_ptrace+ep flamewire-agent");
}

// All events from `first` on belong to one set on one CPU.
void RingEvents::link_alike(std::size_t first) {
    const auto counted = [&](const OpenEvent& open) {
        const EventPart& part = options_.choice.events[open.event].parts.front();
        return std::pair(part.type, part.config);
    };
    for (std::size_t one = first; one < samples_.size(); ++one) {
        if (!samples_[one].shares_ids) continue;
        std::size_t next = one;
        do next = next + 1 < samples_.size() ? next + 1 : first;
        while (next != one && (!samples_[next].shares_ids || counted(samples_[next]) != counted(samples_[one])));
        samples_[one].next_alike = static_cast<std::uint32_t>(next);
    }
}

int RingEvents::open_sample(std::uint32_t event, const EventPart& part, const Subject& subject, wire::StackMode mode,
                            std::uint32_t cpu_index, std::uint32_t set) {
    EventChoice& choice = options_.choice;
    const EventSpec& spec = choice.events[event];
    SampleAttrOptions attr_options{.frequency_hz = choice.frequency_hz,
                                   .period = choice.period,
                                   .kernel = choice.kernel,
                                   // Wake-up events are not for a particular task, so they cannot wait for its exec.
                                   .disabled = !switch_.on && !(switch_.exec_awaited && subject.wakings),
                                   .enable_on_exec = switch_.exec_awaited && !subject.wakings,
                                   .whole_cpu = subject.tid < 0,
                                   .layout = layout_of(mode, spec, part)};
    if (subject.wakings)
        attr_options.layout = {.mode = wire::StackMode::dwarf, .user_chain = false, .woken_at = part.woken_at};
    attr_options.layout.fixed_period = fixed_period(spec, part, attr_options);
    perf_event_attr attr = sample_attr(spec, part, attr_options, capabilities_);
    const bool filtered = !spec.filter.empty();
    const bool starts_now = attr.disabled == 0 && attr.enable_on_exec == 0;
    if (filtered) attr.disabled = 1;
    OpenEvent opened;
    int error = open_event(attr, subject, 2 * std::size_t{cpu_index}, opened);
    if (error == EINVAL && attr.freq != 0) {
        // The kernel lowers the limit at run time; a rate above it is EINVAL.
        const std::int64_t max_hz = kernel_.sysctl("perf_event_max_sample_rate").value_or(0);
        if (max_hz > 0 && attr.sample_freq > static_cast<std::uint64_t>(max_hz)) {
            notify("rate-clamped",
                   fmt::format("The kernel now allows {} samples per second, so {} runs at {} Hz instead of {} Hz.",
                               max_hz, spec.name, max_hz, static_cast<std::uint64_t>(attr.sample_freq)),
                   "sysctl -w kernel.perf_cpu_time_max_percent=0");
            attr.sample_freq = static_cast<std::uint64_t>(max_hz);
            error = open_event(attr, subject, 2 * std::size_t{cpu_index}, opened);
        }
    }
    if (error == 0 && filtered) {
        error = -set_filter(opened.fd, spec, kernel_);
        if (error == 0 && starts_now) error = -std::min(kernel_.ioctl(opened.fd, PERF_EVENT_IOC_ENABLE, 0), 0);
        if (error != 0) kernel_.close(opened.fd);
        if (starts_now) switch_.repeat();  // for children born in between
    }
    if (error != 0) return error;
    opened.event = event;
    opened.cpu_index = cpu_index;
    opened.set = set;
    opened.of_cpu = subject.wakings;
    opened.at_next_instruction = reports_next_instruction(part);
    opened.layout = attr_options.layout;
    opened.slot = event * static_cast<std::uint32_t>(rings_->cpus().size()) + cpu_index;
    opened.shares_ids = part.type == PERF_TYPE_SOFTWARE && !is_software_clock(part);
    opened.next_alike = static_cast<std::uint32_t>(samples_.size());
    by_id_[opened.id] = opened.next_alike;
    samples_.push_back(opened);
    return 0;
}

// Opens an event and redirects its records to a ring; returns an errno, 0 on success.
int RingEvents::open_event(perf_event_attr attr, const Subject& subject, std::size_t ring, OpenEvent& out) {
    const std::size_t cpu_index = RingSet::cpu_index(ring);
    const int cpu = static_cast<int>(rings_->cpus()[cpu_index]);
    const int fd = subject.cgroup >= 0 ? kernel_.open_in_cgroup(attr, subject.cgroup, cpu, -1)
                                       : kernel_.open(attr, subject.tid, cpu);
    if (fd < 0) return -fd;
    out.fd = fd;
    out.cpu_index = static_cast<std::uint32_t>(cpu_index);
    int answer = kernel_.ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, static_cast<unsigned long>(rings_->owner(ring)));
    if (answer >= 0) answer = kernel_.id(fd, out.id);
    if (answer >= 0) return 0;
    kernel_.close(fd);
    return -answer;
}

Result<bool> RingEvents::set_sampling(bool on) {
    switch_.set(on);
    return apply_sampling();
}

Result<bool> RingEvents::apply_sampling() {
    for (const OpenEvent& event : samples_) {
        if (event.fd < 0) continue;
        const int answer = kernel_.ioctl(event.fd, switch_.on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
        if (answer < 0) return fail_errno("switch a perf event", -answer);
    }
    return true;
}

bool RingEvents::close_breakpoints() {
    bool any = false;
    for (OpenEvent& event : samples_) {
        if (event.fd < 0 || !is_breakpoint(options_.choice.events[event.event])) continue;
        kernel_.close(std::exchange(event.fd, -1));
        any = true;
    }
    return any;
}

void RingEvents::repeat_sampling() {
    if (switch_.repeat_until_ns == 0) return;
    (void)apply_sampling();
    switch_.repeated(monotonic_ns());
}

OpenEvent* RingEvents::find(std::uint64_t id) {
    if (id != last_id_ || id == 0) {
        const auto found = by_id_.find(id);
        if (found == by_id_.end()) return nullptr;
        last_id_ = id;
        last_index_ = found->second;
    }
    return &samples_[last_index_];
}

// Copies. If several software events count the same thing, such as a switch, Linux since 6.2 reuses the first event's
// common sample data for the others (kernel/events/core.c, do_perf_sw_event and perf_sample_data::sample_flags),
// including the id. So all of their samples have the first event's id and the same time stamp. The second sample
// belongs to the next event that counts the same, in a circle; after a full circle it is a copy by another set of this
// thread. If neither is possible, equal times are only due to a coarse clock.
OpenEvent* RingEvents::writer_of(Bytes sample, bool& is_copy) {
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
    if (!first->shares_ids || (!several_sets() && &samples_[first->next_alike] == first)) return first;
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

}  // namespace flamewire::agent
