#include "agent/health/system.h"

#include <string_view>

#include "agent/health/sensors.h"
#include "agent/process/proc_text.h"

namespace flamewire::agent {
namespace {

// "0.52 0.58 0.59 2/345 6789"
std::optional<std::array<std::uint64_t, 3>> read_load(const std::string& proc_root) {
    const auto head = read_head(proc_root + "/loadavg", 128);
    if (!head) return std::nullopt;
    std::string_view text = *head;
    std::array<std::uint64_t, 3> load{};
    for (std::uint64_t& value : load) {
        std::string_view field = take_field(text);
        const auto whole = take_number(field, 10);
        if (!whole || !take_char(field, '.') || field.size() != 2) return std::nullopt;
        const auto rest = take_number(field, 10);
        if (!rest || !field.empty()) return std::nullopt;
        value = *whole * 100 + *rest;
    }
    return load;
}

}  // namespace

SystemHealth read_system_health(const HealthRoots& roots, CpuUsage& usage) {
    SystemHealth health;
    health.stat = read_kernel_stat(roots.proc);
    health.shares = usage.next(health.stat);
    health.frequencies_mhz = read_frequencies(roots, health.stat.cpus);
    health.memory = read_memory(roots.proc);
    if (health.memory.total_kb) health.memory_limit = read_memory_limit(roots, *health.memory.total_kb);
    health.load_hundredths = read_load(roots.proc);
    health.temperature_c = read_temperature(roots);
    health.uptime_s = read_number(roots.proc + "/uptime");
    return health;
}

}  // namespace flamewire::agent
