#include "profile/formats/chrome_spans.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace flamewire::profile::chrome {
namespace {

// Spans without an end yet, by index of their interval.
class OpenSpans {
public:
    void begin(std::size_t interval, StringId name) {
        is_open_.resize(interval + 1);
        is_open_[interval] = 1;
        all_.push_back(interval);
        if (name != 0) of_name_[name].push_back(interval);
    }
    // Closes the innermost open span of that name. 0: the innermost of all.
    std::optional<std::size_t> end(StringId name) {
        const auto found = of_name_.find(name);
        if (name != 0 && found == of_name_.end()) return std::nullopt;
        std::vector<std::size_t>& candidates = name == 0 ? all_ : found->second;
        while (!candidates.empty()) {
            const std::size_t interval = candidates.back();
            candidates.pop_back();
            if (std::exchange(is_open_[interval], 0) != 0) return interval;
        }
        return std::nullopt;
    }

private:
    std::vector<std::uint8_t> is_open_;
    std::vector<std::size_t> all_;  // can contain ended spans, like of_name_
    std::unordered_map<StringId, std::vector<std::size_t>> of_name_;
};

}  // namespace

std::vector<Interval> intervals_of(std::vector<Span> spans, std::uint64_t& unmatched) {
    std::ranges::sort(spans, {}, [](const Span& span) { return std::pair(span.start_us, span.order); });
    std::vector<Interval> intervals;
    OpenSpans open;
    double last = 0;
    for (const Span& span : spans) {
        const double length = span.length_us > 0 ? span.length_us : 0;
        last = std::max(last, span.start_us + length);
        if (span.phase == 'X') {
            intervals.push_back({span.start_us, span.start_us + length, span.name, intervals.size()});
        } else if (span.phase == 'B') {
            open.begin(intervals.size(), span.name);
            intervals.push_back({span.start_us, span.start_us, span.name, intervals.size()});
        } else {
            // An end without a name closes the innermost span.
            if (const auto begun = open.end(span.name))
                intervals[*begun].end = span.start_us;
            else
                ++unmatched;
        }
    }
    while (const auto begun = open.end(0)) {
        intervals[*begun].end = last;
        ++unmatched;
    }
    std::ranges::sort(intervals, {}, [](const Interval& one) { return std::tuple(one.start, -one.end, one.order); });
    return intervals;
}

}  // namespace flamewire::profile::chrome
