// What the tables of SQL read: one profile, which must not change while statements run, and answers computed from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/query/query.h"
#include "profile/query/unwinding.h"
#include "profile/store/store.h"
#include "views/hit_values.h"
#include "views/quality_warnings.h"
#include "views/sql/table.h"
#include "wire/batch.h"

namespace flamewire::views::sql {

// `store` must outlive everything that uses the profile.
struct Profile {
    const profile::Store& store;
    std::uint64_t start_ns = 0;   // CLOCK_MONOTONIC of the target at the start of the session
    std::int64_t started_ns = 0;  // that time in ns since 1970; 0: unknown
    std::vector<wire::Notice> notices;
    profile::Unwinding unwinding;
    ModuleReports reports;
    std::string_view (*loss_reason)(wire::LossReason) = nullptr;
    std::vector<std::pair<std::string, Value>> info;  // the rows of the table `info`; texts are std::string
};

struct EventFunction {
    profile::EventId event = 0;
    std::uint32_t place = 0;  // in the list of the event's functions
    profile::FunctionRow row;
    [[nodiscard]] std::int64_t id() const { return (std::int64_t{event} << 32) | place; }
};
struct Warning {
    profile::EventId event = 0;
    wire::Notice notice;
};

// Computed answers are kept, because a join opens the same table many times.
class Context {
public:
    explicit Context(Profile profile) : profile_(std::move(profile)) {}

    [[nodiscard]] const Profile& profile() const { return profile_; }
    [[nodiscard]] const profile::Store& store() const { return profile_.store; }
    [[nodiscard]] std::string_view string(profile::StringId id) const { return store().string(id); }
    [[nodiscard]] Value text(profile::StringId id) const { return null_if_empty(store().string(id)); }

    // As `flamewire report` computes them.
    const std::vector<profile::FunctionRow>& functions(profile::EventId event);
    const std::vector<bool>& sampled_stacks();
    const std::vector<Warning>& warnings();
    const std::vector<profile::Mark>& marks();
    const HitValues& hit_values();

private:
    Profile profile_;
    std::map<profile::EventId, std::vector<profile::FunctionRow>> functions_;
    std::optional<std::vector<bool>> sampled_stacks_;
    std::optional<std::vector<Warning>> warnings_;
    std::optional<std::vector<profile::Mark>> marks_;
    std::optional<HitValues> hit_values_;
};

}  // namespace flamewire::views::sql
