#include "server/http/trim_merge_answers.h"

#include <rapidjson/document.h>

#include <cmath>
#include <set>

#include "base/json_writer.h"
#include "server/session/trim_merge.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

constexpr std::size_t max_merged = 32;
constexpr double longest_ms = 1e12;

Answer new_session_answer(Catalog& catalog, Symbolization& symbols, const Result<std::shared_ptr<Session>>& made) {
    if (!made) return error_answer(made.error());
    symbols.resolve(*made);
    catalog.save(**made);
    JsonWriter json;
    json.object();
    json.member("session", (*made)->id());
    json.end_object();
    return json_answer(json.take());
}

}  // namespace

Answer trim_answer(Catalog& catalog, Symbolization& symbols, Session& session, const Request& request) {
    const auto body = wire::parse_object(request.body);
    if (!body) return error_answer(400, "validation", "the body is not a JSON object: " + body.error().message);
    const auto number = [&](const char* name) {
        const auto found = body->FindMember(name);
        return found != body->MemberEnd() && found->value.IsNumber() ? found->value.GetDouble() : std::nan("");
    };
    const double start_ms = number("start"), end_ms = number("end");
    if (!(start_ms >= 0 && end_ms > start_ms && end_ms <= longest_ms))
        return error_answer(400, "validation", "start and end must be ms of the session, start before end");
    const std::uint64_t begin_ns = session.status().start_ns();
    const auto at = [&](double ms) { return begin_ns + static_cast<std::uint64_t>(ms * 1e6); };
    return new_session_answer(catalog, symbols, trim_session(catalog, session, at(start_ms), at(end_ms)));
}

Answer merge_answer(Catalog& catalog, Symbolization& symbols, const Request& request) {
    const auto body = wire::parse_object(request.body);
    if (!body) return error_answer(400, "validation", "the body is not a JSON object: " + body.error().message);
    std::vector<std::shared_ptr<Session>> sessions;
    std::set<std::string> seen;
    const auto list = body->FindMember("sessions");
    const bool several = list != body->MemberEnd() && list->value.IsArray() && list->value.Size() >= 2 &&
                         list->value.Size() <= max_merged;
    if (!several) return error_answer(400, "validation", "sessions must be a list of 2 to 32 ids");
    for (const auto& id : list->value.GetArray()) {
        if (!id.IsString()) return error_answer(400, "validation", "sessions must be a list of 2 to 32 ids");
        if (!seen.emplace(id.GetString(), id.GetStringLength()).second)
            return error_answer(400, "validation", "a session is listed twice: its samples would count twice");
        auto session = catalog.get({id.GetString(), id.GetStringLength()});
        if (!session) return error_answer(session.error());
        if ((*session)->status().receiving())
            return error_answer(409, "conflict", "session " + (*session)->id() + " is still recorded: stop it first");
        symbols.finish(*session);
        sessions.push_back(*std::move(session));
    }
    return new_session_answer(catalog, symbols, merge_sessions(catalog, sessions, wire::text_member(*body, "name")));
}

}  // namespace flamewire::server
