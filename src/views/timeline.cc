#include "views/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace flamewire::views {
namespace {

constexpr std::size_t most_lanes = 256;
constexpr double ns_per_ms = 1e6;

// Equal slices of a time range. `end_ns` is the end of the last slice.
struct Slices {
    std::uint64_t start_ns = 0, end_ns = 0;
    std::size_t count = 0;
    [[nodiscard]] std::uint64_t width_ns() const { return count == 0 ? 0 : (end_ns - start_ns) / count; }
};

// Buckets begin at multiples of their width, counted from the session's start, so a bucket keeps its samples while
// others are added. The ends of the range are moved outward to bucket boundaries.
Result<Slices> slices_of(const TimelineOptions& options, std::uint64_t origin_ns, std::uint64_t start_ns,
                         std::uint64_t end_ns) {
    if (!options.bucket_ms) return Slices{start_ns, end_ns, options.slices};
    const double span_ms = static_cast<double>(end_ns - start_ns) / ns_per_ms;
    // Reserve two buckets for the ends.
    if (span_ms / *options.bucket_ms > static_cast<double>(max_timeline_slices - 2))
        return fail(ErrorCode::invalid, fmt::format("there are too many buckets: use {:.0f} ms or more for this range",
                                                    std::ceil(span_ms / static_cast<double>(max_timeline_slices - 2))));
    const auto width_ns = static_cast<std::uint64_t>(std::llround(*options.bucket_ms * ns_per_ms));
    const std::uint64_t first = (start_ns - origin_ns) / width_ns;
    const std::uint64_t last = std::max(first + 1, (end_ns - origin_ns + width_ns - 1) / width_ns);
    return Slices{origin_ns + first * width_ns, origin_ns + last * width_ns, last - first};
}

}  // namespace

Result<Timeline> timeline(const profile::Store& store, profile::Filter filter, std::uint64_t origin_ns,
                          const TimelineOptions& options) {
    Timeline line;
    // Without limits the axis covers the known time, with or without samples.
    line.known_ns = std::max(origin_ns, store.known_until_ns());
    filter.start_ns = std::max(filter.start_ns, origin_ns);
    filter.end_ns = std::max(filter.start_ns, std::min(filter.end_ns, line.known_ns));
    const Slices slices = TRY(slices_of(options, origin_ns, filter.start_ns, filter.end_ns));
    line.start_ns = filter.start_ns = slices.start_ns;
    line.end_ns = filter.end_ns = slices.end_ns;
    line.slices.resize(slices.count);
    if (filter.end_ns > filter.start_ns) {
        line.slices = profile::histogram(store, filter, slices.count);
        if (options.by != Breakdown::total)
            line.lanes =
                profile::histogram_by(store, filter, slices.count,
                                      options.by == Breakdown::cpu ? profile::Lanes::cpus : profile::Lanes::threads);
    }
    std::ranges::stable_sort(line.lanes, [](const auto& a, const auto& b) { return a.total.weight > b.total.weight; });
    line.lanes_left_out = line.lanes.size() - std::min(line.lanes.size(), most_lanes);
    line.lanes.resize(line.lanes.size() - line.lanes_left_out);
    line.marks = store.marks().between(filter.start_ns, filter.end_ns, slices.width_ns());
    line.coarse = store.coverage();
    std::erase_if(line.coarse, [&](const profile::Coverage& stretch) {
        return stretch.whole || stretch.end_ns <= filter.start_ns || stretch.start_ns >= filter.end_ns;
    });
    return line;
}

std::string_view name_of(profile::MarkKind kind) {
    switch (kind) {
        case profile::MarkKind::begin: return "begin";
        case profile::MarkKind::exec: return "exec";
        case profile::MarkKind::exit: return "exit";
        case profile::MarkKind::loss: return "loss";
        case profile::MarkKind::reconnect: return "reconnect";
        case profile::MarkKind::change: return "change";
    }
    return "";
}

}  // namespace flamewire::views
