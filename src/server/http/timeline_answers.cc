#include "server/http/timeline_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profile/query/query.h"
#include "server/http/session_view.h"

namespace flamewire::server {
namespace {

constexpr std::uint64_t max_slices = 2000;
constexpr double ns_per_ms = 1e6;

// Equal slices of a time range. `end_ns` is the end of the last slice.
struct Slices {
    std::uint64_t start_ns = 0, end_ns = 0;
    std::size_t count = 0;
    [[nodiscard]] std::uint64_t width_ns() const { return count == 0 ? 0 : (end_ns - start_ns) / count; }
};

struct SliceParameters {
    std::uint64_t count = 200;
    std::optional<double> bucket_ms;  // a width instead of a number
};

Result<SliceParameters> parse_slices(const Request& request) {
    SliceParameters parameters;
    if (const auto text = request.parameter("slices"); !text.empty()) {
        parameters.count = TRY(parse_integer("slices", text));
        if (parameters.count == 0 || parameters.count > max_slices)
            return fail(ErrorCode::invalid, fmt::format("slices must be between 1 and {}", max_slices));
    }
    if (const auto text = request.parameter("bucket"); !text.empty()) {
        parameters.bucket_ms = TRY(parse_number("bucket", text));
        if (*parameters.bucket_ms < 1) return fail(ErrorCode::invalid, "bucket must be a time in ms, at least 1");
    }
    return parameters;
}

// Buckets begin at multiples of their width, counted from the session's start, so a bucket keeps its samples while
// others are added. The ends of the range are moved outward to bucket boundaries.
Result<Slices> slices_of(const SliceParameters& parameters, std::uint64_t origin_ns, std::uint64_t start_ns,
                         std::uint64_t end_ns) {
    if (!parameters.bucket_ms) return Slices{start_ns, end_ns, parameters.count};
    const double span_ms = static_cast<double>(end_ns - start_ns) / ns_per_ms;
    // Reserve two buckets for the ends.
    if (span_ms / *parameters.bucket_ms > static_cast<double>(max_slices - 2))
        return fail(ErrorCode::invalid, fmt::format("there are too many buckets: use {:.0f} ms or more for this range",
                                                    std::ceil(span_ms / static_cast<double>(max_slices - 2))));
    const auto width_ns = static_cast<std::uint64_t>(std::llround(*parameters.bucket_ms * ns_per_ms));
    const std::uint64_t first = (start_ns - origin_ns) / width_ns;
    const std::uint64_t last = std::max(first + 1, (end_ns - origin_ns + width_ns - 1) / width_ns);
    return Slices{origin_ns + first * width_ns, origin_ns + last * width_ns, last - first};
}

// One row per thread or CPU, busiest first. Rows beyond the limit are omitted, and the answer reports that.
void write_lanes(JsonWriter& json, const profile::Store& store, const profile::Filter& filter, std::size_t slices,
                 profile::Lanes by) {
    constexpr std::size_t most_rows = 256;
    std::vector<profile::LaneHistogram> lanes;
    if (filter.end_ns > filter.start_ns) lanes = histogram_by(store, filter, slices, by);
    std::ranges::stable_sort(lanes, [](const auto& a, const auto& b) { return a.total.weight > b.total.weight; });
    json.member("rows_left_out", lanes.size() - std::min(lanes.size(), most_rows));
    if (lanes.size() > most_rows) lanes.resize(most_rows);
    json.list("rows", lanes, [&](const profile::LaneHistogram& lane) {
        json.object();
        if (by == profile::Lanes::cpus) {
            json.member("cpu", lane.id);
        } else {
            const profile::Thread& thread = store.threads()[lane.id];
            json.member("tid", thread.tid);
            json.member("pid", thread.pid);
            json.member("comm", thread.comm);
        }
        json.list("samples", lane.slices, [&](const profile::Weight& weight) { json.number(weight.samples); });
        json.list("weight", lane.slices, [&](const profile::Weight& weight) { json.number(weight.weight); });
        json.end_object();
    });
}

std::string_view name_of(profile::MarkKind kind) {
    switch (kind) {
        case profile::MarkKind::begin:
            return "begin";
        case profile::MarkKind::exec:
            return "exec";
        case profile::MarkKind::exit:
            return "exit";
        case profile::MarkKind::loss:
            return "loss";
        case profile::MarkKind::reconnect:
            return "reconnect";
        case profile::MarkKind::change:
            return "change";
    }
    return "";
}

void write_mark(JsonWriter& json, const profile::Store& store, const profile::Mark& mark, std::uint64_t origin_ns) {
    const auto ms = [&](std::uint64_t time_ns) {
        return (static_cast<double>(time_ns) - static_cast<double>(origin_ns)) / ns_per_ms;
    };
    json.object();
    json.member("kind", name_of(mark.kind));
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

// The parts of the range that the memory limit has reduced, oldest first. Writes nothing if all rows are complete.
void write_coarse(JsonWriter& json, const profile::Store& store, const profile::Filter& filter,
                  std::uint64_t origin_ns) {
    std::vector<profile::Coverage> stretches = store.coverage();
    std::erase_if(stretches, [&](const profile::Coverage& stretch) {
        return stretch.whole || stretch.end_ns <= filter.start_ns || stretch.start_ns >= filter.end_ns;
    });
    const auto ms = [&](std::uint64_t time_ns) {
        return (static_cast<double>(time_ns) - static_cast<double>(origin_ns)) / ns_per_ms;
    };
    json.list("coarse", stretches, [&](const profile::Coverage& stretch) {
        json.object();
        json.member("start_ms", ms(stretch.start_ns));
        json.member("end_ms", ms(stretch.end_ns));
        json.member("bucket_ms", static_cast<double>(stretch.bucket_ns) / ns_per_ms);
        json.member("cpu_folded", stretch.cpu_folded);
        json.member("thread_folded", stretch.thread_folded);
        json.member("dropped", stretch.dropped);
        json.end_object();
    });
}

}  // namespace

Answer timeline_answer(const Session& session, const Request& request) {
    const auto by = parse_breakdown(request.parameter("by"));
    if (!by) return error_answer(by.error());
    const auto parameters = parse_slices(request);
    if (!parameters) return error_answer(parameters.error());
    const std::uint64_t origin_ns = session.status().start_ns();
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        // Without limits the axis covers the known time, with or without samples.
        const std::uint64_t known_ns = std::max(origin_ns, store.known_until_ns());
        profile::Filter filter = view.filter;
        filter.start_ns = std::max(filter.start_ns, origin_ns);
        filter.end_ns = std::max(filter.start_ns, std::min(filter.end_ns, known_ns));
        const auto slices = slices_of(*parameters, origin_ns, filter.start_ns, filter.end_ns);
        if (!slices) return error_answer(slices.error());
        filter.start_ns = slices->start_ns;
        filter.end_ns = slices->end_ns;
        std::vector<profile::Weight> weights(slices->count);
        if (filter.end_ns > filter.start_ns) weights = profile::histogram(store, filter, slices->count);
        JsonWriter json;
        json.object();
        write_view(json, head);
        json.member("start_ms", static_cast<double>(filter.start_ns - origin_ns) / ns_per_ms);
        json.member("slice_ms", static_cast<double>(filter.end_ns - filter.start_ns) / ns_per_ms /
                                    static_cast<double>(slices->count));
        json.member("session_end_ms", static_cast<double>(known_ns - origin_ns) / ns_per_ms);
        json.list("samples", weights, [&](const profile::Weight& weight) { json.number(weight.samples); });
        json.list("weight", weights, [&](const profile::Weight& weight) { json.number(weight.weight); });
        if (*by != views::Breakdown::total)
            write_lanes(json, store, filter, slices->count,
                        *by == views::Breakdown::cpu ? profile::Lanes::cpus : profile::Lanes::threads);
        json.list("marks", store.marks().between(filter.start_ns, filter.end_ns, slices->width_ns()),
                  [&](const profile::Mark& mark) { write_mark(json, store, mark, origin_ns); });
        write_coarse(json, store, filter, origin_ns);
        json.end_object();
        return json_answer(json.take());
    });
}

}  // namespace flamewire::server
