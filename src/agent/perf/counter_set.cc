#include "agent/perf/counter_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "agent/perf/event_probe.h"
#include "agent/perf/open_error.h"
#include "agent/perf/pmu.h"
#include "agent/perf/threads.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

// Most PMUs have 4 to 8 counters. A group must fit as a whole, or it is never counted.
constexpr std::size_t max_group = 8;
constexpr std::size_t group_head = 3;  // nr, enabled and running precede the values of a group

}  // namespace

CounterSet::CounterSet(const CounterSetOptions& options, std::span<const Counter> counters, const Kernel& kernel)
    : options_(options),
      counters_(counters),
      kernel_(kernel),
      cpus_{-1},
      switch_(options.start_disabled, options.enable_on_exec),
      opened_(counters.size(), false) {
    if (options.by != CountBy::cpu) return;
    cpus_.clear();
    for (const std::uint32_t cpu : online_cpus(real_sysfs())) cpus_.push_back(static_cast<int>(cpu));
}

CounterSet::~CounterSet() {
    for (Member& member : members_) close(member);
}

Result<std::unique_ptr<CounterSet>> CounterSet::open(const CounterSetOptions& options,
                                                     std::span<const Counter> counters, const Kernel& kernel) {
    std::unique_ptr<CounterSet> set(new CounterSet(options, counters, kernel));
    set->plan();
    (void)TRY(set->attach());
    return set;
}

CounterAttrOptions CounterSet::attr_options(bool leader) const {
    CounterAttrOptions options;
    options.inherit = options_.by != CountBy::thread && !options_.scope.wide;
    options.group_read = group_read_;
    options.disabled = leader && !switch_.on;
    options.enable_on_exec = leader && switch_.exec_awaited;
    return options;
}

// Whether these events fit on the PMU together: opened on our own thread, all are scheduled at once. (A group that the
// kernel accepts may still never fit, if another user has pinned a counter.)
bool CounterSet::fits(const std::vector<std::uint32_t>& group) const {
    Group opened;
    const Member ourselves;
    const int error = open_group(ourselves, -1, group, opened);
    bool had_turn = error == 0;
    // The other core type of a hybrid CPU is scheduled elsewhere.
    if (error == 0 && counters_[group.front()].part.empty()) {
        std::vector<std::uint64_t> values(group_head + group.size());
        had_turn = kernel_.read(opened.fds.front(), values) >= static_cast<int>(group_head) &&
                   (values[2] > 0 || values[1] == 0);
    }
    for (const int fd : opened.fds) kernel_.close(fd);
    return had_turn;
}

// Decides which events are read together. Events that the kernel counts are always scheduled, so they form one group.
// For CPU events, each group has as many consecutive ones as fit.
void CounterSet::plan() {
    std::vector<std::pair<std::string, std::size_t>> open_groups;  // PMU, index of its last group
    const EventSwitch kept = std::exchange(switch_, EventSwitch(false, false));
    for (std::uint32_t index = 0; index < counters_.size(); ++index) {
        if (counters_[index].status != wire::CounterStatus::counted) continue;
        const EventPart& event = counters_[index].event();
        if (plan_.empty() && group_read_) {
            // Kernels before 4.13 cannot read groups of inherited events.
            if (!fits({index})) {
                group_read_ = false;
                group_read_ = !fits({index});  // the event cannot be opened at all: not a reason against groups
            }
        }
        const std::string key = group_key(event);
        const auto last =
            std::find_if(open_groups.begin(), open_groups.end(), [&](const auto& entry) { return entry.first == key; });
        if (group_read_ && last != open_groups.end()) {
            std::vector<std::uint32_t> larger = plan_[last->second];
            larger.push_back(index);
            if (counted_by_kernel(event) || (larger.size() <= max_group && fits(larger))) {
                plan_[last->second] = std::move(larger);
                continue;
            }
            last->second = plan_.size();
        } else if (last == open_groups.end()) {
            open_groups.emplace_back(key, plan_.size());
        }
        plan_.push_back({index});
    }
    switch_ = kept;
}

Result<bool> CounterSet::attach() {
    if (plan_.empty()) return true;
    if (options_.scope.wide) return attach_wide();
    // Find all threads before opening the first event: see the head of counter_set.h.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const std::uint32_t pid : options_.pids)
        for (const std::uint32_t tid : list_threads(pid)) found.emplace_back(pid, tid);
    int failure = ESRCH;
    for (const auto& [pid, tid] : found)
        if (const int error = open_thread(pid, tid); error != 0) failure = error;
    if (members_.empty()) {
        const std::uint32_t pid = options_.pids.empty() ? 0 : options_.pids.front();
        return std::unexpected(open_error({failure, counters_[plan_.front().front()].name, pid, 0}));
    }
    attach_until_ns_ = monotonic_ns() + clone_ns;
    return true;
}

Result<bool> CounterSet::attach_wide() {
    if (options_.by == CountBy::thread)
        return fail(ErrorCode::unsupported, "counters by thread need processes as the target");
    cgroups_ = TRY(open_cgroups(options_.scope));
    // A CPU can go offline during a recording; the others are still counted.
    std::vector<std::uint32_t> cpus = options_.scope.cpus;
    if (cpus.empty()) cpus = online_cpus(real_sysfs());
    if (options_.by == CountBy::cpu) cpus_.assign(cpus.begin(), cpus.end());
    int failure = ENODEV;
    for (std::size_t index = 0; index < cpus.size(); ++index)
        for (std::size_t group = 0; group < std::max<std::size_t>(cgroups_.size(), 1); ++group) {
            Member member;
            member.cgroup = cgroups_.empty() ? -1 : cgroups_[group].get();
            member.cpu_index = options_.by == CountBy::cpu ? index : 0;
            if (const int error = open_member(member, static_cast<int>(cpus[index])); error != 0) failure = error;
            if (!member.groups.empty()) members_.push_back(std::move(member));
        }
    if (!members_.empty()) return true;
    OpenFailure refused{failure, counters_[plan_.front().front()].name, 0,
                        static_cast<int>(kernel_.sysctl("perf_event_paranoid").value_or(0))};
    refused.whole_cpu = true;
    refused.cgroup = !cgroups_.empty();
    return std::unexpected(open_error(refused));
}

// Returns an errno; 0 if at least part of it was opened.
int CounterSet::open_thread(std::uint32_t pid, std::uint32_t tid) {
    int failure = 0;
    std::vector<std::size_t> indexes;
    for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
        Member member;
        member.pid = pid;
        member.tid = tid;
        member.cpu_index = cpu;
        failure = open_member(member, cpus_[cpu]);
        member.complete_ns = monotonic_ns();
        if (out_of_files(failure)) ++skipped_;
        if (member.groups.empty()) break;
        indexes.push_back(free_.empty() ? members_.size() : free_.back());
        if (free_.empty())
            members_.emplace_back();
        else
            free_.pop_back();
        members_[indexes.back()] = std::move(member);
    }
    if (indexes.empty()) return failure;
    by_tid_[tid] = std::move(indexes);
    return 0;
}

// Leaves out what cannot be opened for the target's thread; returns the errno of the last failure.
int CounterSet::open_member(Member& member, int cpu) {
    int failure = 0;
    const auto keep = [&](Group group) {
        for (const std::uint32_t counter : group.counters) opened_[counter] = true;
        group.values.assign(group.counters.size(), 0);
        member.groups.push_back(std::move(group));
    };
    for (const std::vector<std::uint32_t>& planned : plan_) {
        Group group;
        const int error = open_group(member, cpu, planned, group);
        if (error == 0) {
            keep(std::move(group));
            continue;
        }
        for (const int fd : group.fds) kernel_.close(fd);
        failure = error;
        if (error == ESRCH || out_of_files(error)) return error;  // what is open already counts
        // Open each counter alone, so that one that cannot be counted here does not affect the others.
        for (const std::uint32_t counter : planned) {
            Group single;
            if (planned.size() > 1 && open_group(member, cpu, std::span(&counter, 1), single) == 0)
                keep(std::move(single));
        }
    }
    return failure;
}

// Returns an errno; `group` holds what was opened even on failure.
int CounterSet::open_group(const Member& member, int cpu, std::span<const std::uint32_t> counters, Group& group) const {
    const bool whole_cpu = options_.scope.wide && cpu >= 0;
    const auto tid = whole_cpu ? pid_t{-1} : static_cast<pid_t>(member.tid);
    for (const std::uint32_t counter : counters) {
        const bool leader = group.fds.empty();
        perf_event_attr attr = counter_attr(counters_[counter].spec, counters_[counter].event(), attr_options(leader));
        const int first = leader ? -1 : group.fds.front();
        const int fd = member.cgroup >= 0 ? kernel_.open_in_cgroup(attr, member.cgroup, cpu, first)
                                          : kernel_.open_in_group(attr, tid, cpu, first);
        if (fd < 0) return -fd;
        group.fds.push_back(fd);
        group.counters.push_back(counter);
        if (counters_[counter].spec.filter.empty()) continue;
        if (const int error = set_filter(fd, counters_[counter].spec, kernel_); error != 0) return -error;
        (void)kernel_.ioctl(fd, PERF_EVENT_IOC_RESET, 0);  // what was counted without the filter
    }
    return 0;
}

void CounterSet::close(Member& member) {
    for (const Group& group : member.groups)
        for (const int fd : group.fds) kernel_.close(fd);
    member.groups.clear();
}

void CounterSet::on_task(const TaskRecord& task) {
    if (options_.scope.wide) return;
    const auto known = by_tid_.find(task.tid);
    if (task.exit) {
        inherited_.erase(task.tid);
        if (known == by_tid_.end()) return;
        for (const std::size_t index : known->second) {
            Member& member = members_[index];
            member.exited = true;
            if (options_.by != CountBy::thread) continue;
            read_thread(member, of_ended_);
            close(member);
            free_.push_back(index);
        }
        by_tid_.erase(known);
        return;
    }
    const auto parent = by_tid_.find(task.parent_tid);
    if (parent != by_tid_.end())
        for (const std::size_t index : parent->second) members_[index].had_children = true;
    if (known != by_tid_.end()) return;
    if (options_.by == CountBy::thread) {
        (void)open_thread(task.pid, task.tid);
        return;
    }
    if (attach_until_ns_ == 0) return;
    const bool inherited = parent == by_tid_.end() ? inherited_.contains(task.parent_tid)
                                                   : task.time_ns >= members_[parent->second.back()].complete_ns;
    if (inherited)
        inherited_.insert(task.tid);
    else
        (void)open_thread(task.pid, task.tid);
}

Result<bool> CounterSet::switch_all(bool on) {
    switch_.set(on);
    apply_switch();
    return true;
}

void CounterSet::apply_switch() {
    for (const Member& member : members_)
        for (const Group& group : member.groups)
            for (std::size_t i = 0; i < (group_read_ ? 1 : group.fds.size()); ++i)
                (void)kernel_.ioctl(group.fds[i], switch_.on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

// Adds what this group counted since the previous reading to `deltas`, which has one entry per counter of the set.
void CounterSet::read_group(Group& group, std::span<CounterDelta> deltas) {
    const std::size_t count = group.counters.size();
    const std::size_t wanted = group_read_ ? group_head + count : group_head;
    buffer_.assign(wanted, 0);
    const int got = kernel_.read(group.fds.front(), buffer_);
    if (got < static_cast<int>(wanted) || (group_read_ && buffer_[0] != count)) return;
    // The kernel's sums only grow. If one does not, its difference is included in a later reading.
    const auto since = [](std::uint64_t now, std::uint64_t& last) {
        if (now <= last) return std::uint64_t{0};
        return now - std::exchange(last, now);
    };
    const std::uint64_t enabled_ns = since(buffer_[1], group.enabled_ns);
    const std::uint64_t running_ns = since(buffer_[2], group.running_ns);
    for (std::size_t i = 0; i < count; ++i) {
        CounterDelta& delta = deltas[group.counters[i]];
        delta.value += since(group_read_ ? buffer_[group_head + i] : buffer_[0], group.values[i]);
        delta.enabled_ns += enabled_ns;
        delta.running_ns += running_ns;
    }
}

// By thread: one entry for each counter that was enabled while the thread ran.
void CounterSet::read_thread(Member& member, std::vector<CounterDelta>& into) {
    sums_.assign(counters_.size(), {});
    for (Group& group : member.groups) read_group(group, sums_);
    for (std::uint32_t counter = 0; counter < sums_.size(); ++counter) {
        CounterDelta& delta = sums_[counter];
        if (delta.enabled_ns == 0 && delta.value == 0) continue;
        delta.counter = counter;
        delta.pid = member.pid;
        delta.tid = member.tid;
        delta.status = delta.running_ns == 0 && delta.enabled_ns != 0 ? wire::CounterStatus::not_counted
                                                                      : wire::CounterStatus::counted;
        into.push_back(delta);
    }
}

wire::CounterStatus CounterSet::status_of(std::uint32_t counter, const CounterDelta& delta) const {
    using wire::CounterStatus;
    if (counters_[counter].status != CounterStatus::counted) return counters_[counter].status;
    if (!opened_[counter]) return skipped_ != 0 ? CounterStatus::not_counted : CounterStatus::unsupported;
    return delta.running_ns == 0 && delta.enabled_ns != 0 ? CounterStatus::not_counted : CounterStatus::counted;
}

// By CPU: on every CPU the kernel counts a thread's whole run time as enabled time of its events. The running times
// show where it ran, also for the parts of a hybrid CPU. The difference to the enabled time is due to multiplexing, and
// is distributed in proportion to the running times.
void CounterSet::share_enabled_time() {
    const std::size_t count = counters_.size();
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
        while (end < count && counters_[end].name == counters_[begin].name) ++end;
        std::uint64_t enabled_ns = 0, running_ns = 0;
        const auto each = [&](auto action) {
            for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu)
                for (std::size_t counter = begin; counter < end; ++counter) action(sums_[cpu * count + counter]);
        };
        each([&](const CounterDelta& delta) {
            enabled_ns = std::max(enabled_ns, delta.enabled_ns);
            running_ns += delta.running_ns;
        });
        if (running_ns == 0) continue;  // it was scheduled nowhere
        const double factor = std::max(1.0, static_cast<double>(enabled_ns) / static_cast<double>(running_ns));
        each([&](CounterDelta& delta) {
            delta.enabled_ns = static_cast<std::uint64_t>(static_cast<double>(delta.running_ns) * factor);
        });
    }
}

// Sums over all threads; if by CPU, one sum per CPU.
std::vector<CounterDelta> CounterSet::read_sums() {
    const std::size_t count = counters_.size();
    sums_.assign(count * cpus_.size(), {});
    for (Member& member : members_) {
        for (Group& group : member.groups) read_group(group, std::span(sums_).subspan(member.cpu_index * count, count));
        // No thread inherited from it, so this was its last reading.
        if (member.exited && !member.had_children) close(member);
    }
    if (options_.by == CountBy::cpu && !options_.scope.wide) share_enabled_time();
    std::vector<CounterDelta> deltas;
    for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu)
        for (std::uint32_t counter = 0; counter < count; ++counter) {
            CounterDelta& delta = sums_[cpu * count + counter];
            if (cpus_[cpu] >= 0 && delta.enabled_ns == 0 && delta.value == 0) continue;
            delta.counter = counter;
            delta.cpu_plus_1 = static_cast<std::uint32_t>(cpus_[cpu] + 1);
            delta.status = status_of(counter, delta);
            deltas.push_back(delta);
        }
    return deltas;
}

std::vector<CounterDelta> CounterSet::read() {
    const std::uint64_t now = monotonic_ns();
    if (attach_until_ns_ != 0 && now > attach_until_ns_) {
        attach_until_ns_ = 0;
        inherited_.clear();
    }
    if (switch_.repeat_until_ns != 0) {
        apply_switch();
        switch_.repeated(now);
    }
    if (options_.by != CountBy::thread) return read_sums();
    std::vector<CounterDelta> deltas = std::exchange(of_ended_, {});
    for (Member& member : members_) read_thread(member, deltas);
    return deltas;
}

std::size_t CounterSet::descriptors() const {
    std::size_t count = 0;
    for (const Member& member : members_)
        for (const Group& group : member.groups) count += group.fds.size();
    return count;
}

}  // namespace flamewire::agent
