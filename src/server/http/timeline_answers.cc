#include "server/http/timeline_answers.h"

#include "server/http/session_view.h"
#include "views/timeline.h"

namespace flamewire::server {
namespace {

constexpr double ns_per_ms = 1e6;

Result<views::TimelineOptions> parse_options(const Request& request) {
    views::TimelineOptions options;
    options.by = TRY(parse_breakdown(request.parameter("by")));
    options.slices = TRY(parse_slices(request, options.slices, views::max_timeline_slices));
    if (const auto text = request.parameter("bucket"); !text.empty()) {
        options.bucket_ms = TRY(parse_number("bucket", text));
        if (*options.bucket_ms < 1) return fail(ErrorCode::invalid, "bucket must be a time in ms, at least 1");
    }
    return options;
}

void write_lanes(JsonWriter& json, const profile::Store& store, const views::Timeline& line, bool of_cpus) {
    json.member("rows_left_out", line.lanes_left_out);
    json.list("rows", line.lanes, [&](const profile::LaneHistogram& lane) {
        json.object();
        if (of_cpus) {
            json.member("cpu", lane.id);
        } else {
            write_thread(json, store.threads()[lane.id]);
        }
        json.list("samples", lane.slices, [&](const profile::Weight& weight) { json.number(weight.samples); });
        json.list("weight", lane.slices, [&](const profile::Weight& weight) { json.number(weight.weight); });
        json.end_object();
    });
}

// `ms`: a time in ms of the session.
template <class Ms>
void write_mark(JsonWriter& json, const profile::Store& store, const profile::Mark& mark, Ms ms) {
    json.object();
    json.member("kind", views::name_of(mark.kind));
    json.member("start_ms", ms(mark.start_ns));
    json.member("end_ms", ms(mark.end_ns));
    json.member("count", mark.count);
    if (mark.thread != 0) {
        json.member("pid", store.threads()[mark.thread].pid);
        json.member("name", store.string(mark.name));
    }
    if (mark.kind == profile::MarkKind::change) json.member("name", store.string(mark.name));
    if (mark.kind == profile::MarkKind::loss) {
        json.member("reason", loss_reason_name(mark.reason));
        json.member("lost", is_lost(mark.reason));
        if (mark.event != 0) json.member("event", store.events()[mark.event].name);
    }
    json.end_object();
}

}  // namespace

Answer timeline_answer(const Session& session, const Request& request) {
    const auto options = parse_options(request);
    if (!options) return error_answer(options.error());
    const std::uint64_t origin_ns = session.status().start_ns();
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        const auto line = views::timeline(store, view.filter, origin_ns, *options);
        if (!line) return error_answer(line.error());
        const auto ms = [&](std::uint64_t time_ns) {
            return (static_cast<double>(time_ns) - static_cast<double>(origin_ns)) / ns_per_ms;
        };
        JsonWriter json;
        json.object();
        write_view(json, head);
        json.member("start_ms", static_cast<double>(line->start_ns - origin_ns) / ns_per_ms);
        json.member("slice_ms", static_cast<double>(line->end_ns - line->start_ns) / ns_per_ms /
                                    static_cast<double>(line->slices.size()));
        json.member("session_end_ms", static_cast<double>(line->known_ns - origin_ns) / ns_per_ms);
        json.list("samples", line->slices, [&](const profile::Weight& weight) { json.number(weight.samples); });
        json.list("weight", line->slices, [&](const profile::Weight& weight) { json.number(weight.weight); });
        if (options->by != views::Breakdown::total)
            write_lanes(json, store, *line, options->by == views::Breakdown::cpu);
        json.list("marks", line->marks, [&](const profile::Mark& mark) { write_mark(json, store, mark, ms); });
        json.list("coarse", line->coarse, [&](const profile::Coverage& stretch) {
            json.object();
            json.member("start_ms", ms(stretch.start_ns));
            json.member("end_ms", ms(stretch.end_ns));
            json.member("bucket_ms", static_cast<double>(stretch.bucket_ns) / ns_per_ms);
            json.member("cpu_folded", stretch.cpu_folded);
            json.member("thread_folded", stretch.thread_folded);
            json.member("dropped", stretch.dropped);
            json.end_object();
        });
        json.end_object();
        return json_answer(json.take());
    });
}

}  // namespace flamewire::server
