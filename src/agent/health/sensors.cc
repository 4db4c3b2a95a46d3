#include "agent/health/sensors.h"

#include <dirent.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "agent/process/proc_text.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_zones = 64;
constexpr std::size_t max_rated_cpus = 128;
constexpr std::int64_t coldest_mc = -40'000, hottest_mc = 150'000;  // the range that silicon survives

std::vector<std::uint64_t> rates_of_cpufreq(const HealthRoots& roots, std::span<const CpuTimes> cpus) {
    std::vector<std::uint64_t> rates;
    rates.reserve(cpus.size());
    for (const CpuTimes& cpu : cpus) {
        const auto khz =
            read_number(roots.sys + "/devices/system/cpu/cpu" + std::to_string(cpu.cpu) + "/cpufreq/scaling_cur_freq");
        if (!khz) return {};
        rates.push_back((*khz + 500) / 1000);
    }
    return rates;
}

// "key\t: value"
std::string_view value_behind_colon(std::string_view line) {
    const std::size_t colon = line.find(':');
    std::string_view rest = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    return take_field(rest);
}

std::vector<std::uint64_t> rates_of_cpuinfo(const HealthRoots& roots, std::span<const CpuTimes> cpus) {
    std::vector<std::uint64_t> rates;
    auto reader = LineReader::open(roots.proc + "/cpuinfo", 4096);
    if (!reader) return rates;
    std::optional<std::uint64_t> processor;
    std::string_view line;
    while (rates.size() < cpus.size() && reader->next(line)) {
        std::string_view value = value_behind_colon(line);
        if (line.starts_with("processor")) {
            processor = take_number(value, 10);
        } else if (line.starts_with("cpu MHz")) {
            if (processor != cpus[rates.size()].cpu) return {};
            const auto mhz = take_number(value, 10);
            if (!mhz) return {};
            const bool up = value.size() > 1 && value[0] == '.' && value[1] >= '5';
            rates.push_back(*mhz + (up ? 1 : 0));
        }
    }
    if (rates.size() != cpus.size()) rates.clear();
    return rates;
}

}  // namespace

std::optional<std::int64_t> read_temperature(const HealthRoots& roots) {
    const std::string thermal = roots.sys + "/class/thermal";
    DIR* const directory = ::opendir(thermal.c_str());
    if (directory == nullptr) return std::nullopt;
    std::optional<std::int64_t> hottest;
    std::size_t zones = 0;
    while (const dirent* entry = ::readdir(directory)) {
        const std::string_view name = entry->d_name;
        if (!name.starts_with("thermal_zone")) continue;
        if (++zones > max_zones) break;
        const auto value = read_signed_number(thermal + "/" + entry->d_name + "/temp");
        if (!value || *value == 0 || *value < coldest_mc || *value > hottest_mc) continue;
        hottest = std::max(*value, hottest.value_or(*value));
    }
    ::closedir(directory);
    if (!hottest) return std::nullopt;
    return (*hottest + (*hottest < 0 ? -500 : 500)) / 1000;
}

std::vector<std::uint64_t> read_frequencies(const HealthRoots& roots, std::span<const CpuTimes> cpus) {
    if (cpus.empty() || cpus.size() > max_rated_cpus) return {};
    std::vector<std::uint64_t> rates = rates_of_cpufreq(roots, cpus);
    if (rates.empty()) rates = rates_of_cpuinfo(roots, cpus);
    return rates;
}

}  // namespace flamewire::agent
