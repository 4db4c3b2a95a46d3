#include "server/session/iso_time.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

namespace flamewire::server {

std::string iso_time(std::int64_t realtime_ns) {
    std::int64_t seconds = realtime_ns / 1'000'000'000;
    std::int64_t rest = realtime_ns % 1'000'000'000;
    if (rest < 0) {
        rest += 1'000'000'000;
        --seconds;
    }
    const std::time_t time = seconds;
    std::tm utc{};
    gmtime_r(&time, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec, rest / 1'000'000);
}

std::int64_t parse_iso_time(std::string_view text) {
    std::tm utc{};
    const std::string copy(text);
    const char* rest = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
    if (rest == nullptr) return 0;
    std::int64_t milliseconds = 0;
    if (*rest == '.') milliseconds = std::strtol(rest + 1, nullptr, 10);
    return std::int64_t{timegm(&utc)} * 1'000'000'000 + milliseconds * 1'000'000;
}

}  // namespace flamewire::server
