// Which health data is sent and how often, set by --metrics and the command configure_metrics.
#pragma once

#include <cstdint>
#include <optional>

namespace flamewire::agent {

struct HealthSettings {
    // A shorter interval would show single ticks of 10 ms instead of load. A longer one would not be a live view.
    static constexpr std::uint32_t min_interval_s = 1, max_interval_s = 60;

    bool enabled = true;
    std::uint32_t interval_s = 2;
    bool network = true;
    bool disk = false, threads = false;  // these cost more and are rarely needed
    bool operator==(const HealthSettings&) const = default;
};

// Absent members leave the setting unchanged.
struct HealthChange {
    std::optional<bool> enabled, network, disk, threads;
    std::optional<std::uint32_t> interval_s;
};

inline HealthSettings changed(HealthSettings settings, const HealthChange& change) {
    settings.enabled = change.enabled.value_or(settings.enabled);
    settings.interval_s = change.interval_s.value_or(settings.interval_s);
    settings.network = change.network.value_or(settings.network);
    settings.disk = change.disk.value_or(settings.disk);
    settings.threads = change.threads.value_or(settings.threads);
    return settings;
}

}  // namespace flamewire::agent
