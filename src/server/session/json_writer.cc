#include "server/session/json_writer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "wire/control.h"

namespace flamewire::server {
namespace {

// Length of the valid UTF-8 sequence at the start of `text`, 0 when there is none (overlong, surrogate, cut or out of
// range).
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xC0U) != 0x80) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return length;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = sequence_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

void JsonWriter::text(std::string_view value) {
    if (is_valid_utf8(value)) {
        writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
    } else {
        const std::string repaired = wire::valid_utf8(value);
        writer_.String(repaired.data(), static_cast<rapidjson::SizeType>(repaired.size()));
    }
}

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
