#include "server/http/session_answers.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "profile/query/query.h"
#include "server/http/module_answers.h"
#include "server/http/parameters.h"

namespace flamewire::server {

constexpr std::size_t max_search_bytes = 256;

Answer sessions_answer(Catalog& catalog, const RetentionRules& keep, const Request& request) {
    std::uint64_t offset = 0, limit = 100;
    for (const auto& [name, value] :
         {std::pair<std::string_view, std::uint64_t*>{"offset", &offset}, {"limit", &limit}}) {
        const std::string_view text = request.parameter(name);
        if (text.empty()) continue;
        const auto parsed = parse_integer(name, text);
        if (!parsed) return error_answer(parsed.error());
        *value = *parsed;
    }
    if (limit > 1000) return error_answer(400, "validation", "limit must be at most 1000");
    if (request.parameter("q").size() > max_search_bytes)
        return error_answer(400, "validation", fmt::format("q has at most {} bytes", max_search_bytes));
    const SessionPage page = catalog.list().search({request.parameter("q"), offset, limit});
    JsonWriter json;
    json.object();
    json.list("sessions", page.sessions, [&](const SessionInfo& info) { write_session(json, info); });
    json.list("unreadable", catalog.list().unreadable(), [&](const std::string& sentence) { json.text(sentence); });
    json.member("total", page.total);
    json.member("size_bytes", page.size_bytes);
    json.member("offset", offset);
    json.member("limit", limit);
    json.key("keep");
    json.object();
    json.member("count", keep.count);
    json.member("days", keep.days);
    json.member("size_bytes", keep.size_bytes);
    json.end_object();
    json.end_object();
    return json_answer(json.take());
}

Answer session_answer(const Session& session) {
    const auto reports = session.symbols().reports();
    const auto fetches = session.symbols().fetches(), debug_fetches = session.symbols().debug_fetches();
    const SessionInfo info = session.info();
    JsonWriter json;
    session.read([&](const profile::Store& store) {
        write_session(json, info, [&](JsonWriter& out) {
            write_unwind_processes(out, info.unwinding);
            out.key("modules");
            out.array();
            const auto modules = store.modules();
            const std::vector<bool> nameless = profile::nameless_jit_modules(store);
            for (profile::ModuleId module_id = 1; module_id < modules.size(); ++module_id) {
                const auto report = reports.find(module_id);
                write_module(out, modules[module_id], report == reports.end() ? nullptr : &report->second,
                             fetch_of(fetches, module_id), fetch_of(debug_fetches, module_id),
                             nameless[module_id] ? &store : nullptr);
            }
            out.end_array();
        });
    });
    return json_answer(json.take());
}

Answer relabel_answer(Catalog& catalog, std::string_view id, const Request& request) {
    const auto change = parse_label_change(request.body);
    if (!change) return error_answer(change.error());
    const auto info = catalog.relabel(id, *change);
    if (!info) return error_answer(info.error());
    JsonWriter json;
    write_session(json, *info);
    return json_answer(json.take());
}

Answer remove_session_answer(Catalog& catalog, std::string_view id) {
    if (auto removed = catalog.remove(std::string(id)); !removed) return error_answer(removed.error());
    JsonWriter json;
    json.object();
    json.member("ok", true);
    json.member("session_id", id);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace flamewire::server
