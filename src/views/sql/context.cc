#include "views/sql/context.h"

#include <limits>

#include "profile/query/sample_cursor.h"

namespace flamewire::views::sql {

const std::vector<profile::FunctionRow>& Context::functions(profile::EventId event) {
    const auto known = functions_.find(event);
    if (known != functions_.end()) return known->second;
    return functions_.emplace(event, profile::functions(store(), {.event = event})).first->second;
}

const std::vector<bool>& Context::sampled_stacks() {
    if (!sampled_stacks_) sampled_stacks_ = profile::sampled_stacks(store());
    return *sampled_stacks_;
}

const std::vector<Warning>& Context::warnings() {
    if (warnings_) return *warnings_;
    std::vector<Warning> found;
    for (profile::EventId event = 1; event < store().events().size(); ++event) {
        if (store().total(event).samples == 0) continue;
        const profile::Event& about = store().events()[event];
        const View view{.filter = {.event = event}, .event = event, .event_name = about.name, .unit = about.unit};
        for (wire::Notice& notice :
             quality_warnings(store(), view, profile_.unwinding, profile_.notices, profile_.reports))
            found.push_back({event, std::move(notice)});
    }
    return warnings_.emplace(std::move(found));
}

const std::vector<profile::Mark>& Context::marks() {
    if (!marks_) marks_ = store().marks().between(0, std::numeric_limits<std::uint64_t>::max(), 0);
    return *marks_;
}

const HitValues& Context::hit_values() {
    if (!hit_values_) hit_values_.emplace(store());
    return *hit_values_;
}

}  // namespace flamewire::views::sql
