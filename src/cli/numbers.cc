#include "cli/numbers.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace flamewire::cli {
namespace {

struct Step {
    double size;
    std::string_view name;
};

template <std::size_t count>
std::string in_steps(double value, const std::array<Step, count>& steps) {
    for (const Step& step : steps)
        if (std::fabs(value) >= step.size) {
            const double shown = value / step.size;
            return fmt::format("{:.{}f} {}", shown, step.size == 1 ? 0 : std::fabs(shown) < 10 ? 2 : 1, step.name);
        }
    return fmt::format("{:.0f} {}", value, steps.back().name);
}

constexpr std::array times{Step{1e9, "s"}, Step{1e6, "ms"}, Step{1e3, "us"}, Step{1, "ns"}};
constexpr std::array sizes{Step{1LL << 40, "TiB"}, Step{1LL << 30, "GiB"}, Step{1LL << 20, "MiB"},
                           Step{1LL << 10, "KiB"}, Step{1, "bytes"}};
constexpr std::array counts{Step{1e12, "T"}, Step{1e9, "G"}, Step{1e6, "M"}, Step{1e3, "K"}, Step{1, ""}};

}  // namespace

std::string human_weight(double weight, std::string_view unit) {
    if (unit == "ns") return in_steps(weight, times);
    if (unit == "bytes") return in_steps(weight, sizes);
    std::string text = in_steps(weight, counts);
    if (text.ends_with(' ')) text.pop_back();
    return unit.empty() ? text : fmt::format("{} {}", text, unit);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
    return fmt::format("{:.2f}", whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole) * 100);
}

}  // namespace flamewire::cli
