// Chooses the kind of events for a target.
#include "agent/perf/event_set.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "agent/perf/cpu_event_set.h"
#include "agent/perf/open_error.h"
#include "agent/perf/pmu.h"
#include "agent/perf/thread_event_set.h"
#include "agent/perf/threads.h"

namespace flamewire::agent {
namespace {

// Each thread has events on each CPU. Above this number of descriptors (all switched with the thread), events of whole
// CPUs cost less, although their samples of other processes are dropped.
constexpr std::size_t many_descriptors = 1'024;

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

template <class Set>
Result<std::unique_ptr<Set>> open_as(const EventSetOptions& options, const Capabilities& capabilities,
                                     const Kernel& kernel) {
    auto set = std::make_unique<Set>(options, capabilities, kernel);
    (void)TRY(set->attach());
    return set;
}

bool is_permission(int error) { return error == EACCES || error == EPERM; }

}  // namespace

Result<std::unique_ptr<EventSet>> EventSet::open(const EventSetOptions& options, const Capabilities& capabilities,
                                                 const Kernel& kernel) {
    raise_open_files_limit();
    if (options.scope.wide) return open_as<CpuEventSet>(options, capabilities, kernel);
    const bool by_cpu_possible = !options.targets.empty() && !options.enable_on_exec;
    if (by_cpu_possible && options.prefer_whole_cpus)
        if (auto set = open_as<CpuEventSet>(options, capabilities, kernel)) return set;
    // Do not copy the stacks of all processes for the sake of a few.
    if (by_cpu_possible && !copies_stacks(options) && descriptors_by_thread(options) > many_descriptors)
        if (auto set = open_as<CpuEventSet>(options, capabilities, kernel)) return set;
    auto by_thread = open_as<ThreadEventSet>(options, capabilities, kernel);
    const int lacking = by_thread ? (*by_thread)->lacking() : by_thread.error().errno_value;
    if (!by_cpu_possible || !(is_permission(lacking) || out_of_files(lacking))) return by_thread;
    // Threads that may not have events of their own, or are too many for that, can still be sampled by CPU.
    if (by_thread) by_thread->reset();  // frees its files
    auto by_cpu = open_as<CpuEventSet>(options, capabilities, kernel);
    if (!by_cpu) return by_thread ? open_as<ThreadEventSet>(options, capabilities, kernel) : std::move(by_thread);
    if (out_of_files(lacking)) (*by_cpu)->notify_instead_of_threads();
    return by_cpu;
}

}  // namespace flamewire::agent
