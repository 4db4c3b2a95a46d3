// Values that several tables have: names by id, and times.
#pragma once

#include "views/sql/context.h"

namespace flamewire::views::sql {

inline Value event_name(const Context& context, profile::EventId event) {
    return event == 0 ? Value() : Value(std::string_view(context.store().events()[event].name));
}
inline Value event_unit(const Context& context, profile::EventId event) {
    return event == 0 ? Value() : Value(std::string_view(context.store().events()[event].unit));
}
inline Value process_name(const Context& context, profile::ThreadId thread) {
    return null_if_empty(context.store().processes()[context.store().threads()[thread].process].comm);
}

// Of a time of the target, CLOCK_MONOTONIC: since the start of the session, and since 1970.
inline Value elapsed(const Context& context, std::uint64_t time_ns) {
    return static_cast<std::int64_t>(time_ns - context.profile().start_ns);
}
inline Value wall(const Context& context, std::uint64_t time_ns) {
    if (context.profile().started_ns == 0) return {};
    return context.profile().started_ns + static_cast<std::int64_t>(time_ns - context.profile().start_ns);
}

}  // namespace flamewire::views::sql
