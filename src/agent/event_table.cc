#include "agent/event_table.h"

namespace flamewire::agent {

EventTable make_event_table(const EventChoice& choice) {
    EventTable table;
    for (const EventSpec& spec : choice.events) {
        wire::Event event;
        if (spec.frequency_hz.has_value() || choice.period == 0) {
            event.frequency_hz = spec.frequency_hz.value_or(choice.frequency_hz);
            if (spec.unit == "ns" && event.frequency_hz != 0) event.period = 1'000'000'000 / event.frequency_hz;
        } else {
            event.period = choice.period;
        }
        table.events.push_back(event);
        table.names.push_back(spec.name);
        table.units.push_back(spec.unit);
    }
    return table;
}

}  // namespace flamewire::agent
