#include "counters/derive.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace flamewire::counters {

namespace {

constexpr double ns_per_s = 1e9;

std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t sum = a + b;
    return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

// A counter in canonical spelling: `branches:u` is branch-instructions in mode u.
struct Role {
    std::string_view name;  // without modifiers, aliases resolved
    std::string_view mode;  // u, k, …; "" for both
    std::string_view pmu;   // of pmu/event/
    bool operator==(const Role&) const = default;
};

using Words = std::pair<std::string_view, std::string_view>;

constexpr std::array aliases{
    Words{"cpu-cycles", "cycles"},
    Words{"branches", "branch-instructions"},
    Words{"idle-cycles-frontend", "stalled-cycles-frontend"},
    Words{"idle-cycles-backend", "stalled-cycles-backend"},
};

Role role_of(std::string_view text) {
    Role role;
    if (const std::size_t open = text.find('/'); open != std::string_view::npos) {
        const std::size_t close = text.rfind('/');
        role.pmu = text.substr(0, open);
        role.mode = text.substr(close + 1);
        if (role.mode.starts_with(':')) role.mode.remove_prefix(1);
        role.name = close > open ? text.substr(open + 1, close - open - 1) : std::string_view{};
    } else {
        const std::size_t colon = text.rfind(':');
        role.name = text.substr(0, colon);
        if (colon != std::string_view::npos) role.mode = text.substr(colon + 1);
        // A tracepoint, sys:name, has no mode; its name must not be parsed as one.
        if (role.mode.find_first_not_of("ukp") != std::string_view::npos) return {text, {}, {}};
    }
    // Precision (p) affects where an event is sampled, not what it counts.
    while (role.mode.ends_with('p')) role.mode.remove_suffix(1);
    for (const auto& [alias, name] : aliases)
        if (role.name == alias) role.name = name;
    return role;
}

bool is_clock(std::string_view name) { return name == "task-clock" || name == "cpu-clock"; }

// All counters of one core type, or of the whole CPU: the inputs of derived figures.
class Related {
public:
    void add(const Role& role, std::optional<double> value) {
        if (value) values_.push_back({role, *value});
    }
    // Nothing if the value is 0, because it would be the divisor.
    [[nodiscard]] std::optional<double> of(const Role& other, std::string_view name) const {
        const Role wanted{name, other.mode, other.pmu};
        for (const auto& [role, value] : values_)
            if (role == wanted && value > 0) return value;
        return std::nullopt;
    }
    // CPU time in any mode: a clock does not distinguish modes.
    [[nodiscard]] std::optional<double> clock_ns() const {
        for (const auto& [role, value] : values_)
            if (is_clock(role.name) && value > 0) return value;
        return std::nullopt;
    }

private:
    std::vector<std::pair<Role, double>> values_;
};

struct Share {
    std::string_view of, base, label;
};

constexpr std::array shares{
    Share{"branch-misses", "branch-instructions", "% of all branches"},
    Share{"cache-misses", "cache-references", "% of all cache refs"},
    Share{"L1-dcache-load-misses", "L1-dcache-loads", "% of all L1-dcache accesses"},
    Share{"L1-icache-load-misses", "L1-icache-loads", "% of all L1-icache accesses"},
    Share{"LLC-load-misses", "LLC-loads", "% of all LL-cache accesses"},
    Share{"dTLB-load-misses", "dTLB-loads", "% of all dTLB cache accesses"},
    Share{"iTLB-load-misses", "iTLB-loads", "% of all iTLB cache accesses"},
    Share{"stalled-cycles-frontend", "cycles", "% frontend cycles idle"},
    Share{"stalled-cycles-backend", "cycles", "% backend cycles idle"},
};

std::vector<Derived> figures_of(const Role& role, double value, const Related& related, std::uint64_t elapsed_ns) {
    std::vector<Derived> figures;
    if (is_clock(role.name)) {
        if (elapsed_ns != 0) figures.push_back({value / static_cast<double>(elapsed_ns), "CPUs utilized"});
    } else if (role.name == "cycles") {
        if (const auto clock = related.clock_ns()) figures.push_back({value / *clock, "GHz"});
    } else if (role.name == "instructions") {
        if (const auto cycles = related.of(role, "cycles")) figures.push_back({value / *cycles, "insn per cycle"});
        const double stalled = std::max(related.of(role, "stalled-cycles-frontend").value_or(0),
                                        related.of(role, "stalled-cycles-backend").value_or(0));
        if (stalled > 0 && value > 0) figures.push_back({stalled / value, "stalled cycles per insn"});
    }
    for (const Share& share : shares)
        if (role.name == share.of)
            if (const auto base = related.of(role, share.base))
                figures.push_back({100 * value / *base, std::string(share.label)});
    return figures;
}

void put_in_relation(Line& line, const Related& related, std::uint64_t elapsed_ns) {
    if (!line.value) return;
    const Role role = role_of(line.sum.name);
    std::optional<double> time_ns;
    if (!is_clock(role.name)) time_ns = related.clock_ns();
    if (!time_ns && elapsed_ns != 0) time_ns = static_cast<double>(elapsed_ns);
    if (time_ns) line.per_second = *line.value * ns_per_s / *time_ns;
    std::vector<Derived> figures = figures_of(role, *line.value, related, elapsed_ns);
    if (figures.empty()) return;
    line.derived = figures.front().value;
    line.derived_label = std::move(figures.front().label);
    line.more.assign(std::make_move_iterator(figures.begin() + 1), std::make_move_iterator(figures.end()));
}

// The counter itself over all its parts: see the head of derive.h.
void sum_parts(Line& whole) {
    Sum& sum = whole.sum;
    sum.part.clear();
    sum.status = whole.parts.front().sum.status;
    sum.value = sum.enabled_ns = sum.running_ns = 0;
    for (const Line& part : whole.parts) {
        if (part.sum.status == wire::CounterStatus::counted || part.sum.status == wire::CounterStatus::not_counted) {
            const bool first = sum.status != wire::CounterStatus::counted;
            if (first) sum.status = part.sum.status;
        }
        sum.value = add_saturating(sum.value, part.sum.value);
        sum.running_ns = add_saturating(sum.running_ns, part.sum.running_ns);
        sum.enabled_ns = std::max(sum.enabled_ns, part.sum.enabled_ns);
    }
    whole.value = scaled(sum);
    whole.percent_counted = percent_counted(sum);
    if (!whole.value || sum.running_ns == 0) return;
    const double factor = std::max(1.0, static_cast<double>(sum.enabled_ns) / static_cast<double>(sum.running_ns));
    for (Line& part : whole.parts) {
        if (part.sum.status != wire::CounterStatus::counted) continue;
        part.value = static_cast<double>(part.sum.value) * factor;
    }
}

}  // namespace

void add(Sum& sum, const Sum& interval) {
    sum.value = add_saturating(sum.value, interval.value);
    sum.enabled_ns = add_saturating(sum.enabled_ns, interval.enabled_ns);
    sum.running_ns = add_saturating(sum.running_ns, interval.running_ns);
    if (interval.status == wire::CounterStatus::counted ||
        (interval.status == wire::CounterStatus::not_counted && sum.status != wire::CounterStatus::counted))
        sum.status = interval.status;
}

std::optional<double> scaled(const Sum& sum) {
    if (sum.status != wire::CounterStatus::counted) return std::nullopt;
    if (sum.running_ns == 0) {
        if (sum.enabled_ns != 0) return std::nullopt;
        return static_cast<double>(sum.value);
    }
    if (sum.running_ns >= sum.enabled_ns) return static_cast<double>(sum.value);
    return static_cast<double>(sum.value) * (static_cast<double>(sum.enabled_ns) / static_cast<double>(sum.running_ns));
}

std::optional<double> percent_counted(const Sum& sum) {
    if (sum.enabled_ns == 0) return std::nullopt;
    return std::min(100.0, 100 * static_cast<double>(sum.running_ns) / static_cast<double>(sum.enabled_ns));
}

std::vector<Line> derive(std::span<const Sum> sums, std::uint64_t elapsed_ns) {
    std::vector<Line> lines;
    for (const Sum& sum : sums) {
        Line line;
        line.sum = sum;
        line.value = scaled(sum);
        line.percent_counted = percent_counted(sum);
        if (sum.part.empty()) {
            lines.push_back(std::move(line));
            continue;
        }
        auto whole = std::ranges::find_if(
            lines, [&](const Line& known) { return known.sum.name == sum.name && !known.parts.empty(); });
        if (whole == lines.end()) {
            Line counter;
            counter.sum = sum;
            whole = lines.insert(lines.end(), std::move(counter));
        }
        whole->parts.push_back(std::move(line));
    }
    Related all;
    for (Line& line : lines) {
        if (!line.parts.empty()) sum_parts(line);
        all.add(role_of(line.sum.name), line.value);
    }
    for (Line& line : lines) {
        put_in_relation(line, all, elapsed_ns);
        for (Line& part : line.parts) {
            // The clocks have no parts: a part's GHz would be relative to the time on all cores.
            Related same;
            for (const Line& other : lines)
                for (const Line& candidate : other.parts)
                    if (candidate.sum.part == part.sum.part) same.add(role_of(other.sum.name), candidate.value);
            put_in_relation(part, same, elapsed_ns);
        }
    }
    return lines;
}

}  // namespace flamewire::counters
