#include "agent/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "agent/options.h"
#include "agent/perf/capabilities.h"
#include "agent/perf/pmu.h"

namespace flamewire::agent {
namespace {

std::unexpected<Error> usage(std::string sentence) { return fail(ErrorCode::invalid, std::move(sentence)); }

std::vector<std::string_view> split_at_commas(std::string_view text) {
    std::vector<std::string_view> parts;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        parts.push_back(text.substr(start, end - start));
        start = end + 1;
    }
    return parts;
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view what, std::string_view text, std::uint64_t lowest,
                                   std::uint64_t highest) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty() || value < lowest || value > highest)
        return usage(fmt::format("{} must be a whole number from {} to {}, not '{}'", what, lowest, highest, text));
    return value;
}

Result<std::uint64_t> parse_bytes(std::string_view what, std::string_view text, std::uint64_t lowest,
                                  std::uint64_t highest) {
    constexpr std::string_view suffixes = "KkMmGg";
    const std::size_t suffix = text.empty() ? suffixes.npos : suffixes.find(text.back());
    const std::size_t shift = suffix == suffixes.npos ? 0 : 10 * (suffix / 2 + 1);
    const std::string_view digits = shift == 0 ? text : text.substr(0, text.size() - 1);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value > highest >> shift ||
        value << shift < lowest)
        return usage(fmt::format("{} must be {} to {} bytes (with K, M or G), not '{}'", what, lowest, highest, text));
    return value << shift;
}

Result<bool> parse_pids(std::string_view what, std::string_view text, std::vector<std::uint32_t>& pids) {
    pids.clear();
    for (const std::string_view part : split_at_commas(text)) {
        const auto pid = static_cast<std::uint32_t>(TRY(parse_number(what, part, 1, limits::max_pid)));
        if (std::ranges::find(pids, pid) == pids.end()) pids.push_back(pid);
        if (pids.size() > limits::max_pids)
            return usage(fmt::format("{} takes at most {} processes", what, limits::max_pids));
    }
    return true;
}

Result<bool> parse_words(std::string_view what, std::string_view text, std::vector<std::string>& words) {
    words.clear();
    for (const std::string_view part : split_at_commas(text)) {
        if (part.empty()) return usage(fmt::format("{} takes names, separated by commas", what));
        words.emplace_back(part);
    }
    return true;
}

Result<bool> parse_cpus(std::string_view what, std::string_view text, std::vector<std::uint32_t>& cpus) {
    auto found = parse_cpu_list(text);
    if (!found || found->empty())
        return usage(fmt::format("{} must be a list of CPUs such as 0-3,6, not '{}'", what, text));
    cpus = *std::move(found);
    return true;
}

Result<bool> check_wide(const WideTarget& wide) {
    if (wide.all && !(wide.cgroups.empty() && wide.container.empty()))
        return usage("all means the whole system: give it without a control group or container");
    return true;
}

std::uint32_t whole_words(std::uint64_t stack_bytes) { return static_cast<std::uint32_t>((stack_bytes + 7) / 8 * 8); }

Result<bool> check_unwind(std::string_view mode) {
    if (mode == "auto" || stack_mode(mode)) return true;
    return usage(fmt::format("unknown unwind mode '{}'; modes are auto, fp, dwarf, lbr and hybrid", mode));
}

}  // namespace flamewire::agent
