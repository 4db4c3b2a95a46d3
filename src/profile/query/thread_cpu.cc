#include "profile/query/thread_cpu.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "profile/query/diff.h"

namespace flamewire::profile {

namespace {

// Task-clock of one thread or of all threads, and the intervals in which it was counted.
struct Counted {
    double cpu_ns = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> times;

    void add(const CounterPoint& point) {
        if (point.status != wire::CounterStatus::counted) return;
        // A clock counter should never be multiplexed. If it is, extrapolate.
        const double whole = static_cast<double>(point.value);
        cpu_ns += point.running_ns > 0 && point.running_ns < point.enabled_ns
                      ? whole * static_cast<double>(point.enabled_ns) / static_cast<double>(point.running_ns)
                      : whole;
        times.emplace_back(point.start_ns, point.end_ns);
    }
};

// The total time in which anything was counted. Threads come and go, and counting by thread may be off at times.
std::uint64_t time_of(std::vector<std::pair<std::uint64_t, std::uint64_t>> times) {
    std::ranges::sort(times);
    std::uint64_t sum_ns = 0, until_ns = 0;
    for (const auto& [start_ns, end_ns] : times) {
        if (end_ns > until_ns) sum_ns += end_ns - std::max(start_ns, until_ns);
        until_ns = std::max(until_ns, end_ns);
    }
    return sum_ns;
}

double percent_of(double cpu_ns, std::uint64_t elapsed_ns) {
    return elapsed_ns == 0 ? 0 : 100.0 * cpu_ns / static_cast<double>(elapsed_ns);
}

bool is_clock(const Event& event) {
    return event.name.starts_with("cpu-clock") || event.name.starts_with("task-clock");
}

}  // namespace

std::unordered_map<ThreadId, ThreadCpu> thread_cpu(const Store& store, const Filter& filter,
                                                   const std::vector<ThreadRow>& rows, std::uint64_t session_start_ns) {
    const std::uint64_t start_ns = std::max(filter.start_ns, session_start_ns);
    std::unordered_map<ThreadId, double> by_thread;  // ns
    Counted whole, threads;
    for (const CounterSeries& series : store.counters().series()) {
        if (store.string(series.key.name) != "task-clock" || series.key.cpu_plus_1 != 0) continue;
        for (const CounterPoint& point : points_between(series, start_ns, filter.end_ns)) {
            Counted one;
            one.add(point);
            if (series.key.thread != 0 && !one.times.empty()) by_thread[series.key.thread] += one.cpu_ns;
            (series.key.thread == 0 ? whole : threads).add(point);
        }
    }
    const bool clock = filter.event && *filter.event < store.events().size() && is_clock(store.events()[*filter.event]);
    const std::uint64_t known_ns = covered_ns(store, filter, session_start_ns);
    const std::uint64_t threads_ns = time_of(threads.times), whole_ns = time_of(whole.times);
    Weight all;
    for (const ThreadRow& row : rows) all += row.weight;

    std::unordered_map<ThreadId, ThreadCpu> result;
    for (const ThreadRow& row : rows) {
        // All threads are divided by the same time: a thread that started or ended in it used no CPU before and after.
        if (const auto counted = by_thread.find(row.thread); counted != by_thread.end())
            result[row.thread] = {percent_of(counted->second, threads_ns), CpuSource::counted};
        else if (clock && known_ns != 0)
            result[row.thread] = {percent_of(static_cast<double>(row.weight.weight), known_ns),
                                  CpuSource::clock_samples};
        else if (whole_ns != 0 && all.weight != 0)
            result[row.thread] = {percent_of(whole.cpu_ns, whole_ns) * static_cast<double>(row.weight.weight) /
                                      static_cast<double>(all.weight),
                                  CpuSource::share};
    }
    return result;
}

}  // namespace flamewire::profile
