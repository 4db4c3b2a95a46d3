#include "server/http/hit_answers.h"

#include "base/json_writer.h"
#include "profile/query/hits.h"
#include "server/http/flamegraph.h"
#include "server/http/parameters.h"
#include "views/hits.h"

namespace flamewire::server {
namespace {

constexpr double ns_per_ms = 1e6;
constexpr std::uint64_t max_hits = 5'000, max_frames = 128;

// The hits that a request is about. Without an event: those of all.
struct Hits {
    const profile::Store& store;
    views::HitValues values;
    profile::Filter filter;
    std::uint64_t origin_ns = 0;
};

template <class AnswerOf>
Answer with_hits(const Session& session, const Request& request, AnswerOf answer) {
    const auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    const std::uint64_t origin_ns = session.status().start_ns();
    return session.read([&](const profile::Store& store) -> Answer {
        const auto view = resolve_view(*parameters, store, origin_ns);
        if (!view) return error_answer(view.error());
        Hits hits{store, views::HitValues(store), view->filter, origin_ns};
        if (parameters->event.empty()) hits.filter.event.reset();
        JsonWriter json;
        json.object();
        json.member("session", session.id());
        json.member("data_version", store.version());
        const Result<bool> written = answer(hits, json);
        if (!written) return error_answer(written.error());
        json.end_object();
        return json_answer(json.take());
    });
}

std::string_view name_of(wire::FieldKind kind) {
    switch (kind) {
        case wire::FieldKind::unsigned_number: return "unsigned";
        case wire::FieldKind::signed_number: return "signed";
        case wire::FieldKind::address: return "address";
        case wire::FieldKind::text: return "text";
        case wire::FieldKind::bytes: return "bytes";
    }
    return "unsigned";
}

void write_events(JsonWriter& json, const profile::Store& store) {
    json.array("events");
    for (const profile::Event& event : store.events()) {
        if (!event.traced) continue;
        json.object();
        json.member("name", event.name);
        json.member("unit", event.unit);
        json.list("fields", event.fields, [&](const wire::EventField& field) {
            json.object();
            json.member("name", field.name);
            json.member("kind", name_of(field.kind));
            json.end_object();
        });
        json.end_object();
    }
    json.end_array();
}

void write_hit(JsonWriter& json, const Hits& hits, const views::HitRef& ref, std::size_t frames) {
    const profile::Hit& hit = ref.hit();
    json.object();
    json.member("number", ref.number());
    json.member("time_ms", (static_cast<double>(hit.time_ns) - static_cast<double>(hits.origin_ns)) / ns_per_ms);
    json.member("event", hits.store.events()[ref.chunk->event].name);
    write_thread(json, hits.store.threads()[hit.thread]);
    json.member("cpu", hit.cpu);
    json.member("weight", hit.weight);
    json.array("values");
    for (std::size_t field = 0; field < hits.values.fields(ref).size(); ++field) {
        json.object();
        json.member("name", hits.values.fields(ref)[field]);
        json.member("text", hits.values.text(ref, field));
        json.end_object();
    }
    json.end_array();
    json.list("stack", profile::functions_of(hits.store, hit.stack, frames), [&](const profile::Function& function) {
        json.object();
        json.member("name", hits.store.string(function.name));
        json.member("module", hits.store.string(function.module));
        json.end_object();
    });
    json.end_object();
}

Result<std::uint64_t> bounded(const Request& request, std::string_view name, std::uint64_t standard,
                              std::uint64_t most) {
    const auto text = request.parameter(name);
    if (text.empty()) return standard;
    const std::uint64_t number = TRY(parse_integer(name, text));
    if (number > most) return fail(ErrorCode::invalid, std::string(name) + " must be at most " + std::to_string(most));
    return number;
}

Result<bool> write_list(const Hits& hits, const Request& request, JsonWriter& json) {
    views::HitListOptions options;
    options.filter = request.parameter("filter");
    options.limit = TRY(bounded(request, "limit", options.limit, max_hits));
    const std::uint64_t frames = TRY(bounded(request, "frames", 1, max_frames));
    const views::HitList list = TRY(views::list_hits(hits.store, hits.values, hits.filter, options));
    const profile::HitHistory& history = hits.store.hits();
    json.member("kept", history.size());
    json.member("removed", history.next() - history.size());
    json.member("dropped", history.dropped());
    json.member("matching", list.matching);
    write_events(json, hits.store);
    json.list("hits", list.hits, [&](const views::HitRef& ref) { write_hit(json, hits, ref, frames); });
    return true;
}

Result<bool> write_table(const Hits& hits, const Request& request, JsonWriter& json) {
    const std::string key(request.parameter("by")), value(request.parameter("value"));
    if (key.empty())
        return fail(ErrorCode::invalid, "by is missing: a field, or comm, pid, tid, cpu, event or function");
    const views::HitTable table = TRY(
        views::hit_table(hits.store, hits.values, hits.filter, std::string(request.parameter("filter")), key, value));
    json.member("by", key);
    json.member("value", value);
    views::write_json(json, table, !value.empty());
    return true;
}

}  // namespace

Answer hits_answer(const Session& session, const Request& request) {
    return with_hits(session, request,
                     [&](const Hits& hits, JsonWriter& json) { return write_list(hits, request, json); });
}

Answer hit_table_answer(const Session& session, const Request& request) {
    return with_hits(session, request,
                     [&](const Hits& hits, JsonWriter& json) { return write_table(hits, request, json); });
}

}  // namespace flamewire::server
