#include "counters/readings.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace flamewire::counters {

namespace {

enum Scope : std::size_t { all, by_thread, by_cpu, scopes };

Scope scope_of(const wire::CounterReading& reading) {
    if (reading.values.empty()) return all;
    if (reading.values.front().thread != 0) return by_thread;
    return reading.values.front().cpu_plus_1 != 0 ? by_cpu : all;
}

bool same_counter(const wire::CounterValue& a, const wire::CounterValue& b) {
    return a.name == b.name && a.part == b.part && a.thread == b.thread && a.cpu_plus_1 == b.cpu_plus_1;
}

std::uint64_t add(std::uint64_t a, std::uint64_t b) {
    return a + b < a ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

void join(wire::CounterReading& reading, const wire::CounterReading& next) {
    reading.end_ns = next.end_ns;
    // Most readings have the same counters in the same order, so check the next expected position first.
    std::size_t expected = 0;
    for (const wire::CounterValue& value : next.values) {
        if (expected >= reading.values.size() || !same_counter(reading.values[expected], value)) {
            const auto found = std::ranges::find_if(
                reading.values, [&](const wire::CounterValue& known) { return same_counter(known, value); });
            expected = static_cast<std::size_t>(found - reading.values.begin());
        }
        if (expected == reading.values.size()) {
            reading.values.push_back(value);
        } else {
            wire::CounterValue& known = reading.values[expected];
            known.value = add(known.value, value.value);
            known.enabled_ns = add(known.enabled_ns, value.enabled_ns);
            known.running_ns = add(known.running_ns, value.running_ns);
            if (known.status != wire::CounterStatus::counted) known.status = value.status;
        }
        ++expected;
    }
}

// True if at least one pair was joined.
bool halve(std::vector<wire::CounterReading>& readings) {
    std::vector<wire::CounterReading> joined;
    std::array<std::optional<std::size_t>, scopes> open;  // by scope: index of a reading that may be joined with the
                                                          // next one
    for (wire::CounterReading& reading : readings) {
        std::optional<std::size_t>& first = open[scope_of(reading)];
        if (first && !reading.after_gap && joined[*first].end_ns == reading.start_ns) {
            join(joined[*first], reading);
            first.reset();
        } else {
            first = joined.size();
            joined.push_back(std::move(reading));
        }
    }
    const bool shorter = joined.size() < readings.size();
    readings = std::move(joined);
    return shorter;
}

std::size_t values_in(const std::vector<wire::CounterReading>& readings) {
    std::size_t count = 0;
    for (const wire::CounterReading& reading : readings) count += reading.values.size();
    return count;
}

}  // namespace

void shorten(std::vector<wire::CounterReading>& readings, std::size_t max_readings, std::size_t max_values) {
    while (readings.size() > max_readings || values_in(readings) > max_values)
        if (!halve(readings)) return;
}

}  // namespace flamewire::counters
