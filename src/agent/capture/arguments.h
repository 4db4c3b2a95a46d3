// The encoded arguments of calls in a capture (format.h). Capture writes them, and a replay uses them as keys.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/system.h"
#include "base/varint.h"

namespace flamewire::agent::arguments {

inline std::string of_handle(std::uint64_t handle) { return varints({handle}); }

inline std::string of_open(const std::string& path, int flags) {
    return varints({static_cast<std::uint64_t>(flags)}) + path;
}

inline std::string of_open_in_root(const std::string& root, const std::string& path, int flags) {
    return varints({static_cast<std::uint64_t>(flags), root.size()}) + root + path;
}

inline std::string of_read_at(std::uint64_t handle, std::uint64_t offset, std::size_t size) {
    return varints({handle, offset, size});
}

inline std::string of_status(const std::string& path, bool follow_link) {
    return varints({follow_link ? std::uint64_t{1} : 0}) + path;
}

inline std::string of_read_memory(std::uint32_t pid, std::size_t word_bytes, std::span<const std::uint64_t> addresses) {
    return varints({pid, word_bytes, addresses.size(), addresses.empty() ? 0 : addresses.front()});
}

inline std::string of_now(Clock clock) { return varints({static_cast<std::uint64_t>(clock)}); }

inline std::string of_constant(Constant which) { return varints({static_cast<std::uint64_t>(which)}); }

// `leader` and `cgroup`: handle + 1, 0 if there is none.
inline std::string of_perf_open(const perf_event_attr& attr, int pid, int cpu, std::uint64_t leader,
                                std::uint64_t cgroup) {
    return varints({attr.type, attr.config, attr.config1, attr.config2, attr.sample_type, zigzag(pid), zigzag(cpu),
                    leader, cgroup});
}

inline std::string of_perf_ioctl(std::uint64_t handle, unsigned long request) { return varints({handle, request}); }

inline std::string of_perf_map(std::uint64_t handle, std::size_t size) { return varints({handle, size}); }

inline std::string of_perf_head(std::uint32_t ring) { return varints({ring}); }

}  // namespace flamewire::agent::arguments
