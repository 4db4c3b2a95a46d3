#include "agent/perf/pmu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "base/system.h"

namespace flamewire::agent {
namespace {

// An alias may only use format fields, so one level is enough; the limit of two bounds hostile trees.
constexpr int max_alias_depth = 2;

std::string_view trim(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    if (hex) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string join(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
    return all.empty() ? "none" : all;
}

bool plain_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

std::string pmu_path(std::string_view pmu, std::string_view rest) {
    return fmt::format("{}/{}/{}", pmu_folder, pmu, rest);
}

void merge(PmuConfig& into, const PmuConfig& from) {
    into.config |= from.config;
    into.config1 |= from.config1;
    into.config2 |= from.config2;
}

std::uint64_t* config_word(PmuConfig& config, std::string_view name) {
    if (name == "config") return &config.config;
    if (name == "config1") return &config.config1;
    if (name == "config2") return &config.config2;
    return nullptr;
}

// "0-7" or "21".
std::optional<std::pair<unsigned, unsigned>> parse_bit_range(std::string_view text) {
    const std::size_t dash = text.find('-');
    const auto low = parse_number(text.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : parse_number(text.substr(dash + 1));
    if (!low || !high || *low > *high || *high > 63) return std::nullopt;
    return std::pair{static_cast<unsigned>(*low), static_cast<unsigned>(*high)};
}

std::string known_terms(std::string_view pmu, const Sysfs& sysfs) {
    std::vector<std::string> known;
    for (const std::string_view folder : {"format", "events"})
        if (auto names = sysfs.list(pmu_path(pmu, folder)))
            for (std::string& name : *names)
                if (name.find('.') == std::string::npos) known.push_back(std::move(name));
    std::sort(known.begin(), known.end());
    if (known.size() > 40) known.resize(40);
    return join(known);
}

Result<PmuConfig> parse_terms(std::string_view pmu, std::string_view terms, const Sysfs& sysfs, int depth);

Result<PmuConfig> parse_term(std::string_view pmu, std::string_view term, const Sysfs& sysfs, int depth) {
    const std::size_t equals = term.find('=');
    const std::string_view name = trim(term.substr(0, equals));
    if (!plain_name(name)) return fail(ErrorCode::invalid, fmt::format("'{}' is not a term of {}/…/", term, pmu));
    std::uint64_t value = 1;  // a field without a value is a flag
    if (equals != std::string_view::npos) {
        const auto number = parse_number(trim(term.substr(equals + 1)));
        if (!number) return fail(ErrorCode::invalid, fmt::format("'{}' in {}/…/ needs a number", term, pmu));
        value = *number;
    }
    PmuConfig config;
    if (std::uint64_t* word = config_word(config, name)) {
        if (equals == std::string_view::npos) return fail(ErrorCode::invalid, fmt::format("'{}' needs =NUMBER", name));
        *word = value;
        return config;
    }
    if (const auto format = sysfs.read(pmu_path(pmu, fmt::format("format/{}", name)))) {
        auto placed = place_bits(trim(*format), value);
        if (!placed) return fail(ErrorCode::invalid, fmt::format("{} in {}/…/: {}", name, pmu, placed.error().message));
        return placed;
    }
    if (equals == std::string_view::npos && depth < max_alias_depth)
        if (const auto alias = sysfs.read(pmu_path(pmu, fmt::format("events/{}", name))))
            return parse_terms(pmu, trim(*alias), sysfs, depth + 1);
    return fail(ErrorCode::invalid,
                fmt::format("{} has no field or event '{}' (it has: {})", pmu, name, known_terms(pmu, sysfs)));
}

Result<PmuConfig> parse_terms(std::string_view pmu, std::string_view terms, const Sysfs& sysfs, int depth) {
    PmuConfig all;
    while (!terms.empty()) {
        const std::size_t comma = terms.find(',');
        const std::string_view term = trim(terms.substr(0, comma));
        terms = comma == std::string_view::npos ? std::string_view{} : terms.substr(comma + 1);
        if (term.empty()) continue;
        auto one = parse_term(pmu, term, sysfs, depth);
        if (!one) return one;
        merge(all, *one);
    }
    return all;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text) {
    constexpr std::uint64_t max_cpu = 65'535;
    std::vector<std::uint32_t> cpus;
    text = trim(text);
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        const std::string_view range = trim(text.substr(0, comma));
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
        const std::size_t dash = range.find('-');
        const auto low = parse_number(range.substr(0, dash));
        const auto high = dash == std::string_view::npos ? low : parse_number(range.substr(dash + 1));
        if (!low || !high || *low > *high || *high > max_cpu) return std::nullopt;
        for (std::uint64_t cpu = *low; cpu <= *high; ++cpu) cpus.push_back(static_cast<std::uint32_t>(cpu));
        if (cpus.size() > 2 * max_cpu) return std::nullopt;
    }
    std::sort(cpus.begin(), cpus.end());
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    return cpus;
}

std::string cpu_list_text(const std::vector<std::uint32_t>& cpus) {
    std::string text;
    for (std::size_t begin = 0, end = 0; begin < cpus.size(); begin = end) {
        end = begin + 1;
        while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
        if (begin != 0) text += ',';
        text += std::to_string(cpus[begin]);
        if (end - begin > 1) text += '-' + std::to_string(cpus[end - 1]);
    }
    return text;
}

std::vector<std::uint32_t> online_cpus(const Sysfs& sysfs) {
    if (const auto text = sysfs.read("devices/system/cpu/online"))
        if (auto cpus = parse_cpu_list(*text); cpus && !cpus->empty()) return *std::move(cpus);
    std::vector<std::uint32_t> cpus(static_cast<std::size_t>(System::current().constant(Constant::online_cpus)));
    std::iota(cpus.begin(), cpus.end(), 0U);
    return cpus;
}

std::vector<std::string> list_pmus(const Sysfs& sysfs) {
    auto names = sysfs.list(std::string(pmu_folder));
    if (!names) return {};
    std::sort(names->begin(), names->end());
    return *std::move(names);
}

Result<Pmu> read_pmu(std::string_view name, const Sysfs& sysfs) {
    const auto type_text = plain_name(name) ? sysfs.read(pmu_path(name, "type"))
                                            : Result<std::string>(fail(ErrorCode::not_found, "not a name"));
    const auto type = type_text ? parse_number(trim(*type_text)) : std::nullopt;
    if (!type || *type > UINT32_MAX)
        return fail(ErrorCode::not_found,
                    fmt::format("this machine has no PMU '{}' (it has: {})", name, join(list_pmus(sysfs))));
    Pmu pmu{std::string(name), static_cast<std::uint32_t>(*type), {}, name == "cpu"};
    // Core PMUs have a file `cpus`, uncore PMUs have `cpumask`.
    for (const std::string_view file : {"cpus", "cpumask"}) {
        const auto text = sysfs.read(pmu_path(name, file));
        if (!text) continue;
        if (auto cpus = parse_cpu_list(*text)) pmu.cpus = *std::move(cpus);
        pmu.core = pmu.core || file == "cpus";
        break;
    }
    return pmu;
}

std::vector<Pmu> hybrid_core_pmus(const Sysfs& sysfs) {
    std::vector<Pmu> core;
    for (const std::string& name : list_pmus(sysfs)) {
        if (name == "cpu") return {};
        auto pmu = read_pmu(name, sysfs);
        if (pmu && pmu->core) core.push_back(*std::move(pmu));
    }
    if (core.size() < 2) return {};
    return core;
}

Result<PmuConfig> place_bits(std::string_view format, std::uint64_t value) {
    const std::size_t colon = format.find(':');
    PmuConfig config;
    std::uint64_t* word = colon == std::string_view::npos ? nullptr : config_word(config, format.substr(0, colon));
    if (!word) return fail(ErrorCode::invalid, fmt::format("this kernel's format '{}' is not supported", format));
    std::uint64_t rest = value;
    for (std::string_view ranges = format.substr(colon + 1); !ranges.empty();) {
        const std::size_t comma = ranges.find(',');
        const auto bits = parse_bit_range(trim(ranges.substr(0, comma)));
        ranges = comma == std::string_view::npos ? std::string_view{} : ranges.substr(comma + 1);
        if (!bits) return fail(ErrorCode::invalid, fmt::format("this kernel's format '{}' is not supported", format));
        const unsigned width = bits->second - bits->first + 1;
        const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
        *word |= (rest & mask) << bits->first;
        rest = width == 64 ? 0 : rest >> width;
    }
    if (rest != 0) return fail(ErrorCode::invalid, fmt::format("the value {:#x} is too large", value));
    return config;
}

Result<PmuConfig> parse_pmu_terms(std::string_view pmu, std::string_view terms, const Sysfs& sysfs) {
    return parse_terms(pmu, terms, sysfs, 0);
}

}  // namespace flamewire::agent
