#include "agent/health/collector.h"

#include <algorithm>

#include "agent/health/io.h"
#include "agent/health/system.h"

namespace flamewire::agent {

std::vector<std::string> HealthCollector::round(const HealthSettings& settings, const OwnState& own,
                                                const Moment& now) {
    std::vector<std::string> frames;
    frames.push_back(system_frame(now, read_system_health(roots_, usage_)));
    const std::vector<ProcessHealth> processes =
        processes_.read(roots_.proc, own.pids, max_processes, now.monotonic_ns);
    for (const ProcessHealth& process : processes) frames.push_back(process_frame(now, process));
    if (settings.network) frames.push_back(network_frame(now, read_interfaces(roots_.proc, max_interfaces)));
    if (settings.disk) {
        std::optional<ProcessIo> io;
        for (const std::uint32_t pid : own.pids)
            if (!io) io = read_process_io(roots_.proc, pid);
        frames.push_back(disk_frame(now, read_disks(roots_.proc, max_disks), io));
    }
    if (settings.threads) add_threads(frames, processes, now);
    frames.push_back(agent_frame(now, own.cost, own_share(own.cost, now)));
    return frames;
}

void HealthCollector::add_threads(std::vector<std::string>& frames, const std::vector<ProcessHealth>& processes,
                                  const Moment& now) {
    std::size_t left = max_threads_a_round;
    for (const ProcessHealth& process : processes) {
        if (left == 0) break;
        const std::vector<ThreadTicks> threads =
            read_thread_ticks(roots_.proc, process.pid, std::min(left, max_threads));
        if (threads.empty()) continue;  // it exited in the meantime
        left -= threads.size();
        frames.push_back(threads_frame(now, process.pid, ticks_per_second_, threads));
    }
}

std::optional<std::uint32_t> HealthCollector::own_share(const OwnCost& cost, const Moment& now) {
    std::optional<std::uint32_t> share;
    if (own_before_ && now.monotonic_ns > own_before_->at_ns && cost.cpu_ns >= own_before_->cpu_ns) {
        const std::uint64_t elapsed_ns = now.monotonic_ns - own_before_->at_ns;
        share =
            static_cast<std::uint32_t>(((cost.cpu_ns - own_before_->cpu_ns) * 10'000 + elapsed_ns / 2) / elapsed_ns);
    }
    own_before_ = OwnBefore{cost.cpu_ns, now.monotonic_ns};
    return share;
}

void HealthCollector::forget() {
    usage_.forget();
    processes_.forget();
    own_before_.reset();
}

}  // namespace flamewire::agent
