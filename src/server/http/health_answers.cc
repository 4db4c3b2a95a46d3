#include "server/http/health_answers.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "server/http/parameters.h"

namespace flamewire::server {

Answer metrics_current_answer(const Session& session) {
    JsonWriter json;
    json.object();
    for (const auto& [type, frames] : session.health().newest()) {
        json.key(type);
        json.raw(type == "process" ? frames.front().json : frames.back().json);
        if (type == "process")
            json.list("processes", frames, [&](const HealthHistory::Frame& frame) { json.raw(frame.json); });
    }
    json.end_object();
    return json_answer(json.take());
}

Answer metrics_history_answer(const Session& session, const Request& request) {
    const std::string_view asked = request.parameter("type");
    const std::string_view type = asked.empty() ? "system" : asked;
    if (!is_health_type(type))
        return error_answer(400, "validation",
                            fmt::format("type is system, process, network, disk, threads or agent, not {:.40}", type));
    const auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    // Only the times apply; no event is selected.
    const auto view = views::resolve_view({.event = {},
                                           .start_ms = parameters->start_ms,
                                           .end_ms = parameters->end_ms,
                                           .pids = {},
                                           .tids = {},
                                           .containers = {},
                                           .pods = {},
                                           .cgroups = {}},
                                          profile::Store(), session.status().start_ns());
    if (!view) return error_answer(view.error());
    std::uint64_t slices = 0;
    if (const auto text = request.parameter("slices"); !text.empty()) {
        const auto parsed = parse_integer("slices", text);
        if (!parsed) return error_answer(parsed.error());
        slices = *parsed;
    }
    JsonWriter json;
    json.array();
    for (const HealthHistory::Frame& frame :
         session.health().between(type, view->filter.start_ns, view->filter.end_ns, slices))
        json.raw(frame.json);
    json.end_array();
    return json_answer(json.take());
}

}  // namespace flamewire::server
