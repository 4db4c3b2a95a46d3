#include "agent/perf/cpu_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "agent/perf/open_error.h"
#include "agent/perf/pmu.h"
#include "base/system.h"

namespace flamewire::agent {
namespace {

// The kernel's idle threads, and processes without a pid in this agent's pid namespace.
constexpr std::uint32_t pid_of_none = 0;

// A folder that was removed and created again is a different control group.
bool same_folder(int fd, const std::string& path) {
    FileStatus open, now;
    return System::current().status_of(fd, open) == 0 && System::current().status(path, true, now) == 0 &&
           open.device == now.device && open.inode == now.inode;
}

wire::StackMode mode_of(const EventSetOptions& options) {
    // Modes with more data also work for targets that need less.
    wire::StackMode mode = options.scope.mode;
    for (const Target& target : options.targets) {
        if (target.mode == wire::StackMode::dwarf) return target.mode;
        if (mode == wire::StackMode::fp) mode = target.mode;
    }
    return mode;
}

}  // namespace

CpuTargets::CpuTargets(RingEvents& events)
    : events_(events),
      own_pid_(static_cast<std::uint32_t>(System::current().constant(Constant::own_pid))),
      of_targets_(!events.options().targets.empty()) {}

Result<bool> CpuTargets::attach() {
    const wire::StackMode mode = mode_of(events_.options());
    (void)TRY(events_.check_modes(std::span(&mode, 1)));
    targets_ = TRY(watch(events_.options().targets));
    for (const Target& target : events_.options().targets) followed_.insert(target.pid);
    const std::vector<std::uint32_t> cpus = TRY(cpus_of(events_.options().scope));
    groups_ = TRY(open_cgroups(events_.options().scope));
    (void)TRY(events_.open_rings(cpus, std::span(&mode, 1)));
    events_.prepare_wakings(!groups_.empty());
    for (std::uint32_t index = 0; index < events_.rings().cpus().size(); ++index) (void)TRY(open_cpu(index, mode));
    return true;
}

void CpuTargets::notify_instead_of_threads() {
    events_.notify(
        "whole-cpus",
        "The limit of open files is too low for events of each thread, so whole CPUs are sampled, and samples of other "
        "processes are discarded.",
        "ulimit -n 65536 before starting the agent");
}

// Opens process and map records for all that runs on the CPU, even if only a control group is sampled: a process may
// have started before it was moved into the group.
Result<bool> CpuTargets::open_cpu(std::uint32_t cpu_index, wire::StackMode mode) {
    int error = events_.open_sideband({}, cpu_index);
    if (groups_.empty() && error == 0) error = events_.open_samples({}, mode, cpu_index, 0);
    for (const UniqueFd& group : groups_)
        if (error == 0) error = events_.open_samples({-1, group.get()}, mode, cpu_index, 0);
    // ENODEV: the CPU went offline meanwhile.
    if (error == 0 || error == ENODEV) return true;
    OpenFailure failure{error, "", 0, events_.capabilities().paranoid};
    if (!events_.options().choice.events.empty()) failure.event = events_.options().choice.events.front().name;
    failure.whole_cpu = true;
    failure.cgroup = !groups_.empty();
    return std::unexpected(open_error(failure));
}

Classification CpuTargets::classify(const SampleRecord& sample, const OpenEvent&) {
    if (sample.pid == own_pid_) return Classification::out_of_scope;
    if (of_targets_) return followed_.contains(sample.pid) ? Classification::counts : Classification::out_of_scope;
    if (sample.pid != pid_of_none) return Classification::counts;
    // An idle thread has no user mode.
    if (sample.user_mode())
        events_.notify("other-namespaces",
                       "Processes outside of the agent's pid namespace have no numbers here; they are not shown.",
                       "run the agent in the host's pid namespace (docker run --pid=host)");
    return Classification::out_of_scope;
}

// Children belong to the target from birth. A pid that another process reuses is no longer followed.
bool CpuTargets::on_sideband(const TaskRecord& task, std::size_t, std::uint64_t) {
    if (!of_targets_) return true;
    if (task.exit || task.pid == task.parent_pid) {
        check_soon_ = check_soon_ || (task.exit && followed_.contains(task.pid));
        return followed_.contains(task.pid);
    }
    if (!followed_.contains(task.parent_pid)) {
        followed_.erase(task.pid);
        return false;
    }
    followed_.insert(task.pid);
    return true;
}

bool CpuTargets::poll() {
    check_soon_ = false;
    if (of_targets_) return std::ranges::all_of(targets_, target_gone);
    if (events_.options().scope.cpus.empty())
        if (std::vector<std::uint32_t> online = online_cpus(real_sysfs()); online != online_) {
            const bool first = online_.empty();
            online_ = std::move(online);
            if (!first && online_.size() > events_.rings().cpus().size())
                events_.notify(
                    "cpus-changed",
                    fmt::format("CPUs came online; sampled are {}.",
                                cpu_list_text({events_.rings().cpus().begin(), events_.rings().cpus().end()})),
                    "change a setting or start again to sample them, too");
        }
    if (groups_.empty()) return false;
    for (std::size_t i = 0; i < groups_.size(); ++i)
        if (same_folder(groups_[i].get(), events_.options().scope.cgroups[i])) return false;
    return true;
}

}  // namespace flamewire::agent
