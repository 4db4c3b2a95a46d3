#include "server/session/prune.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/clock.h"

namespace flamewire::server {
namespace {

constexpr std::int64_t day_ns = std::int64_t{24} * 3600 * 1'000'000'000;

std::string format_size(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} bytes", bytes);
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    static constexpr std::string_view units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
    return fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
    static constexpr std::string_view units = "KMGT";
    std::uint64_t value = 0;
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const auto [at, error] = std::from_chars(begin, end, value);
    std::string_view unit(at, static_cast<std::size_t>(end - at));
    for (const std::string_view tail : {"iB", "B"})
        if (unit.size() > tail.size() && unit.ends_with(tail)) unit.remove_suffix(tail.size());
    const std::size_t power = unit.empty() ? 0 : unit.size() == 1 ? units.find(unit[0]) + 1 : 0;
    if (error != std::errc{} || value == 0 || (power == 0 && !unit.empty()))
        return fail(ErrorCode::invalid, fmt::format("a size is a number followed by K, M, G or T, not {:.40}", text));
    if (value > std::numeric_limits<std::uint64_t>::max() >> (10 * power))
        return fail(ErrorCode::invalid, fmt::format("{:.40} is more than can be counted", text));
    return value << (10 * power);
}

std::vector<Pruned> select_expired(std::vector<StoredSession> sessions, const RetentionRules& rules,
                                   std::int64_t now_ns) {
    std::erase_if(sessions, &StoredSession::keep);
    std::ranges::sort(sessions, [](const StoredSession& a, const StoredSession& b) {
        return a.written_ns != b.written_ns ? a.written_ns < b.written_ns : a.id < b.id;
    });
    std::uint64_t count = sessions.size(), size = 0;
    for (const StoredSession& session : sessions) size += session.size_bytes;
    std::vector<Pruned> pruned;
    for (const StoredSession& session : sessions) {
        if (session.in_use) continue;
        const bool newest = &session == &sessions.back();
        const std::int64_t age_days = (now_ns - session.written_ns) / day_ns;
        std::string reason;
        if (rules.days != 0 && age_days >= 0 && static_cast<std::uint64_t>(age_days) >= rules.days)
            reason = fmt::format("--keep-days {}: it is {} days old", rules.days, age_days);
        else if (rules.count != 0 && count > rules.count && !newest)
            reason = fmt::format("--keep-count {}: it was the oldest of {}", rules.count, count);
        else if (rules.size_bytes != 0 && size > rules.size_bytes && !newest)
            reason = fmt::format("--keep-size {}: all were {}", format_size(rules.size_bytes), format_size(size));
        if (reason.empty()) continue;
        --count;
        size -= session.size_bytes;
        pruned.push_back({session.id, std::move(reason)});
    }
    return pruned;
}

std::size_t Pruner::run() {
    if (!rules_.any()) return 0;
    std::size_t deleted = 0;
    for (const Pruned& it : select_expired(catalog_.list().stored(), rules_, realtime_ns())) {
        const auto removed = catalog_.remove_unused(it.id);
        if (removed) {
            ++deleted;
            spdlog::info("session {} deleted by {}", it.id, it.reason);
        } else if (removed.error().code != ErrorCode::busy && removed.error().code != ErrorCode::not_found &&
                   refused_.insert(it.id).second) {
            spdlog::error("session {} should be deleted by {}, but {}", it.id, it.reason, removed.error().message);
        }
    }
    return deleted;
}

}  // namespace flamewire::server
