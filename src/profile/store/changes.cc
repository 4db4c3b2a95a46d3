#include "profile/store/changes.h"

#include <fmt/format.h>

#include <vector>

namespace flamewire::profile {
namespace {

std::string rate(const wire::Recording& recording) {
    if (recording.period != 0) return fmt::format("every {} events", recording.period);
    return fmt::format("{} Hz", recording.frequency_hz);
}

}  // namespace

std::string what_changed(const wire::Recording& before, const wire::Recording& after) {
    std::vector<std::string> changes;
    if (before.target != after.target) changes.push_back(fmt::format("{} became {}", before.target, after.target));
    if (rate(before) != rate(after)) changes.push_back(fmt::format("{} became {}", rate(before), rate(after)));
    if (before.unwind != after.unwind)
        changes.push_back(fmt::format("stacks {} became {}", before.unwind, after.unwind));
    if (before.stack_bytes != after.stack_bytes)
        changes.push_back(fmt::format("{} bytes of stack became {}", before.stack_bytes, after.stack_bytes));
    if (before.max_depth != after.max_depth)
        changes.push_back(fmt::format("{} frames at most became {}", before.max_depth, after.max_depth));
    if (before.kernel != after.kernel)
        changes.emplace_back(after.kernel ? "with kernel functions" : "without kernel functions");
    return changes.empty() ? "events" : fmt::format("{:.1000}", fmt::format("{}", fmt::join(changes, "; ")));
}

}  // namespace flamewire::profile
