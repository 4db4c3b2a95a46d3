#include "server/session/session_name.h"

#include <fmt/format.h>

#include <ctime>

#include "wire/session_scan.h"

namespace flamewire::server {
namespace {

std::string local_timestamp() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return fmt::format("{:04}{:02}{:02}_{:02}{:02}{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                       local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

std::string sanitized_name(std::string_view target) {
    std::string word;
    for (const char c : target.substr(0, 40)) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        const bool plain = letter || (!word.empty() && word.back() != '_' && (c == '.' || c == '-'));
        if (plain)
            word += c;
        else if (!word.empty() && word.back() != '_')
            word += '_';
    }
    while (!word.empty() && (word.back() == '_' || word.back() == '.')) word.pop_back();
    return word.empty() ? "session" : word;
}

std::string timestamped_name(std::string_view target) {
    return fmt::format("{}_{}", local_timestamp(), sanitized_name(target));
}

Result<wire::RecordingId> read_recording_id(const std::string& stream_path) {
    wire::SessionScanner scanner = TRY(wire::SessionScanner::open(stream_path));
    bool damaged = false;
    while (const auto record = TRY(scanner.next())) {
        damaged = damaged || record->unread_bytes != 0;
        if (record->frame.flag == wire::Flag::batch)
            return TRY(wire::peek_header(as_bytes_view(record->frame.payload))).recording_id;
    }
    if (damaged || scanner.tail().kind == wire::SessionTail::Kind::damaged)
        return fail(ErrorCode::invalid, wire::unreadable_session(stream_path, scanner.size_bytes()));
    return fail(ErrorCode::not_found, stream_path + " has no batch");
}

}  // namespace flamewire::server
