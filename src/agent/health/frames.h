// The JSON of each kind of health frame (flag 4, docs/wire.md). Unknown values are left out, except that CPU usage
// without a previous reading is null.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "agent/health/io.h"
#include "agent/health/process.h"
#include "agent/health/system.h"

namespace flamewire::agent {

// The same moment on two clocks: the first is for display, samples use the second.
struct Moment {
    std::int64_t realtime_ns = 0;
    std::uint64_t monotonic_ns = 0;
};

// Resource usage of the agent itself.
struct OwnCost {
    std::uint64_t cpu_ns = 0;
    std::uint64_t rss_bytes = 0;  // 0: unknown
    std::uint64_t ring_bytes = 0;
    std::uint32_t queue_batches = 0;
    std::uint64_t spool_bytes = 0;
    std::uint64_t samples_read = 0, samples_lost = 0;
    std::uint64_t frames_dropped = 0;  // health frames that did not fit in the link's queue
};

std::string system_frame(const Moment& now, const SystemHealth& health);
std::string process_frame(const Moment& now, const ProcessHealth& process);
std::string network_frame(const Moment& now, std::span<const NetworkInterface> interfaces);
std::string disk_frame(const Moment& now, std::span<const Disk> disks, const std::optional<ProcessIo>& target);
std::string threads_frame(const Moment& now, std::uint32_t pid, std::uint64_t ticks_per_second,
                          std::span<const ThreadTicks> threads);
// `cpu_share`: of one CPU, since the previous frame, in hundredths of a percent.
std::string agent_frame(const Moment& now, const OwnCost& cost, std::optional<std::uint32_t> cpu_share);

}  // namespace flamewire::agent
