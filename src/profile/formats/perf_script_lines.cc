#include "profile/formats/perf_script_lines.h"

#include <charconv>
#include <limits>

#include "profile/formats/perf_script_words.h"

namespace flamewire::profile::perf_script_words {

bool ids_of(std::string_view word, PerfSampleLine& into) {
    if (word.empty() || (!is_digit(word[0]) && word[0] != '-')) return false;
    if (word == "-1" || word == "-1/-1") return true;
    const std::size_t slash = word.find('/');
    if (slash == std::string_view::npos) {
        if (!number_of(word, into.tid)) return false;
        into.pid = into.tid;
        return true;
    }
    return number_of(word.substr(0, slash), into.pid) && number_of(word.substr(slash + 1), into.tid);
}

bool cpu_of(std::string_view word, std::uint32_t& cpu) {
    return word.size() > 2 && word.front() == '[' && word.back() == ']' &&
           number_of(word.substr(1, word.size() - 2), cpu);
}

bool time_of(std::string_view word, std::uint64_t& ns) {
    if (word.size() < 4 || word.back() != ':') return false;
    word.remove_suffix(1);
    const std::size_t point = word.find('.');
    if (point == std::string_view::npos) return false;
    std::uint64_t seconds = 0, fraction = 0;
    const std::string_view digits = word.substr(point + 1);
    if (digits.size() > 9 || !number_of(word.substr(0, point), seconds) || !number_of(digits, fraction)) return false;
    for (std::size_t digit = digits.size(); digit < 9; ++digit) fraction *= 10;
    constexpr std::uint64_t second_ns = 1'000'000'000;
    if (seconds > std::numeric_limits<std::int64_t>::max() / second_ns - 1) return false;
    ns = seconds * second_ns + fraction;
    return true;
}

}  // namespace flamewire::profile::perf_script_words

namespace flamewire::profile {
namespace {

using namespace perf_script_words;

// Parses the fields after process and thread. False: there is no event.
bool fields(std::string_view text, PerfSampleLine& into) {
    std::string_view word = take_word(text);
    if (cpu_of(word, into.cpu)) word = take_word(text);
    // Interrupt and preemption flags of tracepoints: "d.h1", "....".
    if (word.size() >= 4 && word.size() <= 6 && word.find(':') == std::string_view::npos &&
        word.find('.') != std::string_view::npos && !is_digit(word[0]))
        word = take_word(text);
    into.has_time = time_of(word, into.time_ns);
    if (into.has_time) word = take_word(text);
    into.has_period = number_of(word, into.period);
    if (into.has_period) word = take_word(text);
    if (word.size() < 2 || word.back() != ':') {
        if (word != "PERF_RECORD_LOST") return false;
        into.event = word;
    } else {
        into.event = word.substr(0, word.size() - 1);
        if (is_digit(into.event[0])) return false;
        if (!into.has_time && into.event.find_first_of("()[]{}\"';,") != std::string_view::npos) return false;
    }
    trim_front(text);
    trim_back(text);
    into.rest = text;
    return true;
}

}  // namespace

bool parse_perf_sample(std::string_view line, PerfSampleLine& into) {
    trim_back(line);
    trim_front(line);
    // A name can contain spaces and numbers. The thread is the first number after which the remaining fields fit.
    for (std::size_t at = 1; at < line.size(); ++at) {
        if (!is_space(line[at - 1]) || !(is_digit(line[at]) || line[at] == '-')) continue;
        std::string_view rest = line.substr(at);
        PerfSampleLine sample;
        if (!ids_of(take_word(rest), sample) || !fields(rest, sample)) continue;
        into = sample;
        into.comm = line.substr(0, at);
        trim_back(into.comm);
        return true;
    }
    return false;
}

bool parse_perf_frame(std::string_view line, PerfFrameLine& into) {
    trim_front(line);
    trim_back(line);
    into = {};
    std::size_t digits = 0;
    while (digits < line.size() && digits < 17 && is_hex(line[digits])) ++digits;
    if (digits == 0 || digits > 16 || (digits < line.size() && !is_space(line[digits]))) return false;
    const char* const begin = line.data();
    (void)std::from_chars(begin, begin + digits, into.address, 16);
    line.remove_prefix(digits);
    trim_front(line);
    if (line.ends_with(')')) {
        // The file is in the last parentheses; " (deleted)" after its name belongs to it.
        std::string_view inside = line.substr(0, line.size() - 1);
        constexpr std::string_view deleted = " (deleted)";
        const bool is_deleted = inside.ends_with(deleted);
        if (is_deleted) inside.remove_suffix(deleted.size());
        std::size_t open = inside.rfind('(');
        while (open != std::string_view::npos && open != 0 && !is_space(inside[open - 1]))
            open = inside.rfind('(', open - 1);
        if (open != std::string_view::npos) {
            into.module = inside.substr(open + 1);
            line = line.substr(0, open);
            trim_back(line);
        }
    }
    if (into.module == "inlined") {
        into.inlined = true;
        into.module = {};
    }
    // "+0x1b" is the offset in the function.
    std::size_t end = line.size();
    while (end > 0 && is_hex(line[end - 1])) --end;
    if (end >= 3 && end < line.size() && line.substr(end - 3, 3) == "+0x") line = line.substr(0, end - 3);
    if (line != "[unknown]") into.symbol = line;
    return true;
}

}  // namespace flamewire::profile
