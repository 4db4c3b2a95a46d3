// Hits of traced events: a page of a list, and a table by the values of a key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "profile/store/model.h"
#include "profile/store/store.h"
#include "views/hit_values.h"

namespace flamewire::views {

struct HitListOptions {
    // Words separated by spaces, of which a hit must match all. `NAME=VALUE` and the same with != < <= > >= and ~
    // (contains) compare a field, or comm, pid, tid, cpu, event, function (any on the stack) or leaf (the innermost);
    // another word is a part of the thread's name, of a value, or of the innermost function. Quotes enclose spaces.
    // '= {}' as in profile::Filter. NOLINTBEGIN(readability-redundant-member-init)
    std::string filter = {};
    std::size_t limit = 200;
    std::optional<std::uint64_t> from = {};  // only hits with this number or a higher one
    // NOLINTEND(readability-redundant-member-init)
};

struct HitList {
    std::vector<HitRef> hits;    // the newest that match, in time order
    std::uint64_t matching = 0;  // hits that match, including those that `limit` leaves out
};

// A hit belongs to `filter` by its own time. invalid: the text of options.filter.
Result<HitList> list_hits(const profile::Store& store, const HitValues& values, const profile::Filter& filter,
                          const HitListOptions& options);

// Hits with the same value of a key.
struct HitGroup {
    std::string key;
    std::uint64_t hits = 0;    // kept ones
    std::uint64_t weight = 0;  // of these, in the event's unit: a hit of a thinned event stands for several
    // Of another field, over the kept hits.
    double sum = 0, min = 0, max = 0, p50 = 0, p95 = 0, p99 = 0;
    [[nodiscard]] double average() const { return hits == 0 ? 0 : sum / static_cast<double>(hits); }
};

// Values from `low` on and below `high`; of negative ones, those above `low` up to `high`. Equal: exactly 0.
struct HitBucket {
    double low = 0, high = 0;
    std::uint64_t hits = 0;
};

struct HitTable {
    std::vector<HitGroup> groups;  // by weight, descending; at most max_hit_groups
    std::uint64_t other_groups = 0, other_hits = 0;
    std::uint64_t without_key = 0;        // hits whose event has no such field
    std::vector<HitBucket> distribution;  // of the value, by powers of two
};
inline constexpr std::size_t max_hit_groups = 1'000;

// `key`: a field, or comm, pid, tid, cpu, event or function (the innermost one). `value`: a field with numbers; empty:
// only counts. invalid: no traced event has such a field, or it is a text.
Result<HitTable> hit_table(const profile::Store& store, const HitValues& values, const profile::Filter& filter,
                           const std::string& hit_filter, const std::string& key, const std::string& value);

// Writes the members of the table: groups, and with `value` their figures and the distribution.
void write_json(JsonWriter& json, const HitTable& table, bool with_value);

}  // namespace flamewire::views
