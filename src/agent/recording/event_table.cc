#include "agent/recording/event_table.h"

#include "agent/perf/attr.h"
#include "recording/hit_table.h"

namespace flamewire::agent {
namespace {

// All parts have the same values, see keep_common_values().
void describe_values(const EventSpec& spec, wire::Event& event) {
    event.traced = true;
    event.fields = recording::fields_on_wire(values_of(spec, spec.parts.front()));
    if (spec.parts.front().values) event.print_format = spec.parts.front().values->print_format;
}

}  // namespace

EventTable make_event_table(const EventChoice& choice) {
    EventTable table;
    for (const EventSpec& spec : choice.events) {
        if (spec.off_cpu != 0) {
            table.off_cpu = {static_cast<std::uint32_t>(table.events.size()), spec.off_cpu};
            for (std::size_t kind = 0; kind < off_cpu_reasons; ++kind) {
                if ((spec.off_cpu >> kind & 1U) == 0) continue;
                table.events.emplace_back();
                table.names.emplace_back(name_of(static_cast<OffCpuReason>(kind)));
                table.units.push_back(spec.unit);
            }
            continue;
        }
        wire::Event event;
        const SamplingRate rate = sampling_rate_of(spec, {choice.frequency_hz, choice.period});
        event.frequency_hz = rate.frequency_hz;
        event.period = rate.period;
        if (spec.traced) describe_values(spec, event);
        if (spec.trigger && table.events.size() < 64) table.triggers |= std::uint64_t{1} << table.events.size();
        if (spec.unit == "ns" && rate.frequency_hz != 0) event.period = 1'000'000'000 / rate.frequency_hz;
        table.events.push_back(event);
        table.names.push_back(spec.name);
        table.units.push_back(spec.unit);
    }
    return table;
}

}  // namespace flamewire::agent
