#include "server/saved_answers.h"

#include <fmt/format.h>

#include "server/http/assets.h"
#include "server/http/counter_answers.h"
#include "server/http/html_answer.h"

namespace flamewire::server {

Result<std::string> saved_page(const Session& session, const views::Parameters& view) {
    Request request;
    request.method = "GET";
    if (!view.event.empty()) request.query["event"] = view.event;
    if (view.start_ms > 0) request.query["start"] = fmt::format("{}", view.start_ms);
    if (view.end_ms) request.query["end"] = fmt::format("{}", *view.end_ms);
    const auto list = [&](const char* name, const auto& all) {
        if (!all.empty()) request.query[name] = fmt::format("{}", fmt::join(all, ","));
    };
    list("pid", view.pids);
    list("tid", view.tids);
    list("container", view.containers);
    list("pod", view.pods);
    list("cgroup", view.cgroups);
    Answer answer = html_answer(session, request, {asset_bytes("app.js"), asset_bytes("app.css")});
    if (answer.status != 200) return fail(ErrorCode::unsupported, std::move(answer.body));
    return std::move(answer.body);
}

std::string counters_json(const Session& session) { return counters_answer(session, {}).body; }

}  // namespace flamewire::server
