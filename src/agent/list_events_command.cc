#include "agent/list_events_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "agent/command_arguments.h"
#include "agent/reply.h"

namespace flamewire::agent {
namespace {

// A symbol can have 64 KiB.
constexpr std::size_t max_reply_bytes = std::size_t{512} << 10;

std::string bounded_text(Arguments& args, const char* name, std::size_t limit) {
    std::string text = args.text(name).value_or("");
    if (text.size() > limit) args.refuse(fmt::format("{} may have at most {} bytes", name, limit));
    return text;
}

Result<EventQuery> read_query(const wire::Command& command) {
    Arguments args(command.args);
    EventQuery query;
    query.describe = bounded_text(args, "describe", EventQuery::max_text_bytes);
    query.search = bounded_text(args, "search", EventQuery::max_search_bytes);
    query.file = bounded_text(args, "file", EventQuery::max_text_bytes);
    query.pids = args.pids();
    query.wide = args.wide();
    if (query.wide.given() && !query.pids.empty()) args.refuse("all, cpus, cgroups and container exclude pid");
    const auto kind = std::ranges::find(event_kind_names, args.text("kind").value_or(""));
    query.kind = static_cast<EventKind>(kind - event_kind_names.begin());
    if (query.describe.empty() && kind == event_kind_names.end())
        args.refuse("kind must be tracepoint, function, usdt, kernel-function or file");
    const bool in_file = query.kind == EventKind::function || query.kind == EventKind::usdt;
    if (query.describe.empty() && in_file && query.file.empty()) args.refuse("file required");
    (void)TRY(args.check());
    return query;
}

}  // namespace

Result<std::string> list_events(const wire::Command& command, Control& control) {
    const EventQuery query = TRY(read_query(command));
    const EventList list = TRY(control.list_events(query));
    Reply reply(command);
    reply.member("total", list.total).member("kernel_functions", list.kernel_functions);
    if (!query.describe.empty()) reply.member("description", list.description);
    reply.texts("files", list.files).array("events");
    std::size_t bytes = 0;
    for (const ListedEvent& event : list.events) {
        bytes += event.name.size();
        if (bytes > max_reply_bytes) break;
        reply.object().member("name", event.name).member("offset", event.offset).member("file", event.file);
        if (event.problem != nullptr) reply.member("problem", event.problem);
        reply.end_object();
    }
    reply.end_array();
    return reply.finish();
}

}  // namespace flamewire::agent
