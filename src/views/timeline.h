// The time axis of a view: samples over time, in total or per thread or CPU, and marks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/query/query.h"
#include "profile/store/store.h"
#include "views/view.h"

namespace flamewire::views {

inline constexpr std::uint64_t max_timeline_slices = 2000;

// As answers have it: "exec".
std::string_view name_of(profile::MarkKind kind);

struct TimelineOptions {
    std::uint64_t slices = 200;
    std::optional<double> bucket_ms;  // a width instead of a number
    Breakdown by = Breakdown::total;
};

struct Timeline {
    std::uint64_t start_ns = 0, end_ns = 0;  // of the first and the last slice
    std::uint64_t known_ns = 0;              // end of the session's known time
    std::vector<profile::Weight> slices;
    std::vector<profile::LaneHistogram> lanes;  // busiest first, up to a limit
    std::size_t lanes_left_out = 0;
    std::vector<profile::Mark> marks;
    std::vector<profile::Coverage> coarse;  // the parts that the memory limit has reduced, oldest first
};

// `origin_ns`: start of the session. invalid: the range has too many buckets.
Result<Timeline> timeline(const profile::Store& store, profile::Filter filter, std::uint64_t origin_ns,
                          const TimelineOptions& options);

}  // namespace flamewire::views
