#include "server/http/html_answer.h"

#include <fmt/format.h>

#include <initializer_list>

#include "base/clock.h"
#include "base/json_writer.h"
#include "profile/formats/html.h"
#include "server/http/counter_answers.h"
#include "server/http/module_answers.h"
#include "server/http/profile_answers.h"
#include "server/http/session_answers.h"
#include "server/http/timeline_answers.h"
#include "server/session/iso_time.h"

namespace flamewire::server {
namespace {

using Parameters = std::initializer_list<std::pair<const char*, const char*>>;

// Limit for the page's state, in the form of its URL.
constexpr std::size_t max_page_bytes = std::size_t{64} << 10;

}  // namespace

Answer html_answer(const Session& session, const Request& request, const PageBytes& bytes) {
    if (bytes.script.empty()) return error_answer(404, "not_found", "this program was built without its page");
    const std::string_view page = request.parameter("page");
    if (page.size() > max_page_bytes) return error_answer(400, "validation", "page must be at most 64 KiB");
    Answer failure;
    JsonWriter json;
    // Adds an answer as a member. False if it is an error, which then becomes the answer of the export.
    const auto add = [&](const char* name, Answer answer) {
        if (answer.status != 200) {
            failure = std::move(answer);
            return false;
        }
        json.key(name);
        json.raw(answer.body);
        return true;
    };
    const auto with = [&](Parameters more) {
        Request part = request;
        for (const auto& [name, value] : more) part.query[name] = value;
        return part;
    };
    // Threads are selected in the page's table, so the table needs all of them.
    Request of_all = request;
    of_all.query.erase("tid");
    of_all.query["slices"] = "60";  // as the page requests them
    // The time axis covers the whole session, whatever range the view has.
    const auto whole = [&](Parameters more) {
        Request part = with(more);
        part.query.erase("start");
        part.query.erase("end");
        return part;
    };
    json.object();
    json.member("version", FLAMEWIRE_VERSION);
    json.member("made", iso_time(realtime_ns()));
    json.member("page", page);
    for (const char* name : {"event", "start", "end", "pid", "tid", "container", "pod", "cgroup"})
        json.member(name, request.parameter(name));
    const bool all = add("session", session_answer(session)) &&
                     add("flamegraph", flamegraph_answer(session, with({{"merge", "line"}, {"min_share", "0"}}))) &&
                     add("threads", thread_summary_answer(session, of_all)) &&
                     add("modules", modules_answer(session, request)) &&
                     add("warnings", warnings_answer(session, request)) &&
                     add("counters", counters_answer(session, with({{"by", "total"}}))) &&
                     add("timeline", timeline_answer(session, whole({{"slices", "1000"}}))) &&
                     add("timeline_thread", timeline_answer(session, whole({{"slices", "300"}, {"by", "thread"}}))) &&
                     add("timeline_cpu", timeline_answer(session, whole({{"slices", "300"}, {"by", "cpu"}})));
    if (!all) return failure;
    json.end_object();
    const std::string title = title_of(session.info()) + " – Flamewire";
    auto file = profile::html({title, bytes.style, bytes.script, json.take()});
    if (!file) return error_answer(file.error());
    return download("text/html; charset=utf-8", std::move(*file), fmt::format("flamewire-{}.html", session.id()));
}

}  // namespace flamewire::server
