#include "agent/recording/event_table.h"

namespace flamewire::agent {

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
        if (spec.unit == "ns" && rate.frequency_hz != 0) event.period = 1'000'000'000 / rate.frequency_hz;
        table.events.push_back(event);
        table.names.push_back(spec.name);
        table.units.push_back(spec.unit);
    }
    return table;
}

}  // namespace flamewire::agent
