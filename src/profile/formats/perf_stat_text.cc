#include "profile/formats/perf_stat_text.h"

#include <charconv>
#include <utility>

#include "profile/formats/line_words.h"

namespace flamewire::profile {
namespace {

constexpr double ns_of_second = 1e9, ns_of_millisecond = 1e6, most = 9e18;

// "24,673,883,923" or "7,829.39"
bool grouped_number_of(std::string_view word, double& into) {
    char digits[40];
    std::size_t size = 0;
    for (const char c : word)
        if (c != ',' && size < sizeof(digits)) digits[size++] = c;
    const auto [stop, error] = std::from_chars(digits, digits + size, into);
    return size != 0 && error == std::errc() && stop == digits + size && into >= 0 && into < most;
}

}  // namespace

void PerfStatText::line(std::string_view text) {
    std::string_view rest = text;
    const std::string_view first = take_word(rest);
    wire::CounterValue value;
    double number = 0;
    if (first == "<not") {
        value.status = rest.find("counted>") != std::string_view::npos ? wire::CounterStatus::not_counted
                                                                       : wire::CounterStatus::unsupported;
        rest.remove_prefix(std::min(rest.find('>'), rest.size() - 1) + 1);
    } else if (!grouped_number_of(first, number)) {
        return;
    }
    std::string_view name = take_word(rest), unit = "events";
    if (name == "seconds") {
        if (rest.find("elapsed") != std::string_view::npos)
            elapsed_ns_ = static_cast<std::uint64_t>(number * ns_of_second);
        return;
    }
    if (name == "msec") {
        name = take_word(rest);
        unit = "ns";
        number *= ns_of_millisecond;
    }
    if (name.empty()) return;
    if (name.starts_with("cycles")) unit = "cycles";
    value.name = builder_.string(name);
    value.unit = builder_.string(unit);
    value.value = static_cast<std::uint64_t>(number);
    // The end of the line has the share of the time during which the event had a counter.
    double share = 100;
    if (rest.ends_with("%)")) {
        const std::size_t open = rest.rfind('(');
        if (open == std::string_view::npos || !grouped_number_of(rest.substr(open + 1, rest.size() - open - 3), share))
            share = 100;
        // perf stat has scaled the value up. Readings have the unscaled count.
        if (share > 0 && share < 100) value.value = static_cast<std::uint64_t>(number * share / 100);
    }
    value.running_ns = static_cast<std::uint64_t>(share);
    reading_.values.push_back(value);
}

void PerfStatText::finish(std::uint64_t start_ns) {
    wire::CounterReading reading = std::exchange(reading_, {});
    const std::uint64_t elapsed_ns = std::exchange(elapsed_ns_, 0);
    if (reading.values.empty() || elapsed_ns == 0) return;
    reading.start_ns = std::max(start_ns, last_end_ns_);
    reading.end_ns = last_end_ns_ = reading.start_ns + elapsed_ns;
    reading.after_gap = true;
    for (wire::CounterValue& value : reading.values) {
        value.enabled_ns = value.status == wire::CounterStatus::counted ? elapsed_ns : 0;
        value.running_ns = value.enabled_ns / 100 * value.running_ns;
    }
    builder_.counters(std::move(reading));
}

}  // namespace flamewire::profile
