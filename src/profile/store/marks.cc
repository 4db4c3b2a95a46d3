#include "profile/store/marks.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "profile/store/id_index.h"

namespace flamewire::profile {

namespace {

// A loss that is reported again within this time continues the previous one.
constexpr std::uint64_t same_trouble_ns = 1'000'000'000;
// Losses of a few reasons and events alternate. The latest mark of each is among this many.
constexpr std::ptrdiff_t most_back = 32;

bool alike(const Mark& a, const Mark& b) { return a.kind == b.kind && a.reason == b.reason && a.event == b.event; }

// The last mark of [first, last) that is like `mark`; nullptr if there is none.
Mark* last_alike(std::vector<Mark>& marks, std::ptrdiff_t first, std::ptrdiff_t last, const Mark& mark) {
    for (std::ptrdiff_t i = last - 1; i >= std::max(first, last - most_back); --i)
        if (Mark& one = marks[static_cast<std::size_t>(i)]; alike(one, mark)) return &one;
    return nullptr;
}

// `next` begins later. Thread and name of the first mark stay.
void join(Mark& mark, const Mark& next) {
    mark.end_ns = std::max(mark.end_ns, next.end_ns);
    const std::uint64_t sum = mark.count + next.count;
    mark.count = sum < next.count ? std::numeric_limits<std::uint64_t>::max() : sum;
}

// Merges marks of the older half if the result spans no more than four average distances. At most half of them (plus
// one) remain for each reason. Coarse marks stay as they are until the others are as wide.
void coarsen(std::vector<Mark>& marks, std::size_t max) {
    const std::size_t half = marks.size() / 2;
    const auto span_ns = static_cast<double>(marks[half].start_ns - marks[0].start_ns);
    const double widest_ns = 4 * span_ns / static_cast<double>(half);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < marks.size(); ++i) {
        Mark* const before = i < half ? last_alike(marks, 0, static_cast<std::ptrdiff_t>(kept), marks[i]) : nullptr;
        if (before != nullptr && static_cast<double>(marks[i].end_ns - before->start_ns) <= widest_ns)
            join(*before, marks[i]);
        else
            marks[kept++] = marks[i];
    }
    marks.resize(kept);
    // Too few marks could be merged, so the oldest are dropped.
    if (kept > max) marks.erase(marks.begin(), marks.begin() + static_cast<std::ptrdiff_t>(kept / 2));
}

}  // namespace

void Marks::add(const Mark& mark) {
    if (mark.end_ns < mark.start_ns) return;
    std::vector<Mark>& marks = by_kind_[static_cast<std::size_t>(mark.kind)];
    const auto place = std::upper_bound(marks.begin(), marks.end(), mark,
                                        [](const Mark& a, const Mark& b) { return a.start_ns < b.start_ns; });
    if (mark.kind == MarkKind::loss) {
        Mark* const before = last_alike(marks, 0, place - marks.begin(), mark);
        if (before != nullptr &&
            mark.start_ns - before->start_ns <= before->end_ns - before->start_ns + same_trouble_ns)
            return join(*before, mark);
    }
    marks.insert(place, mark);
    if (marks.size() > max_of_kind_) coarsen(marks, max_of_kind_);
}

std::vector<Mark> Marks::between(std::uint64_t start_ns, std::uint64_t end_ns, std::uint64_t merge_ns) const {
    std::vector<Mark> found;
    for (const std::vector<Mark>& marks : by_kind_) {
        const auto first = std::ssize(found);
        for (const Mark& mark : marks) {
            if (mark.start_ns >= end_ns) break;
            if (mark.end_ns < start_ns) continue;
            Mark* const before = last_alike(found, first, std::ssize(found), mark);
            if (before != nullptr && mark.start_ns - before->start_ns < merge_ns)
                join(*before, mark);
            else
                found.push_back(mark);
        }
    }
    std::ranges::stable_sort(found, {}, &Mark::start_ns);
    return found;
}

std::size_t Marks::memory_bytes() const {
    std::size_t bytes = 0;
    for (const std::vector<Mark>& marks : by_kind_) bytes += marks.capacity() * sizeof(Mark);
    return bytes;
}

}  // namespace flamewire::profile
