// Writes members of JSON objects, with names as valid UTF-8.
#pragma once

#include <rapidjson/writer.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/utf8.h"
#include "profile/formats/export_limit.h"

namespace flamewire::profile {

// A buffer that takes no more text once it exceeds `max_bytes`.
class JsonBuffer {
public:
    explicit JsonBuffer(std::size_t max_bytes) : max_bytes_(max_bytes) {}
    [[nodiscard]] bool full() const { return text_.size() > max_bytes_; }
    // too_large: the buffer was full. `as`: what the export is, for example "a profile for speedscope".
    Result<std::string> take(std::string_view as) {
        if (full()) return export_too_large(as, max_bytes_);
        return std::move(text_);
    }
    // What rapidjson asks of a stream. NOLINTBEGIN(readability-identifier-naming)
    using Ch = char;
    void Put(char c) {
        if (!full()) text_ += c;
    }
    void Flush() {}
    // NOLINTEND(readability-identifier-naming)

private:
    std::size_t max_bytes_;
    std::string text_;
};

class JsonOutput : public rapidjson::Writer<JsonBuffer> {
public:
    using rapidjson::Writer<JsonBuffer>::Writer;
    // The buffer takes no more text: stop writing.
    [[nodiscard]] bool full() const { return os_->full(); }
};

inline void put_text(JsonOutput& out, std::string_view text) {
    const std::string valid = valid_utf8(text);
    out.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}
inline void put(JsonOutput& out, const char* key, std::string_view text) {
    out.Key(key);
    put_text(out, text);
}
inline void put(JsonOutput& out, const char* key, std::uint64_t number) {
    out.Key(key);
    out.Uint64(number);
}
// `put_one` writes one value of the list.
template <class List, class Each>
void put_list(JsonOutput& out, const char* key, const List& list, Each put_one) {
    out.Key(key);
    out.StartArray();
    for (const auto& one : list) {
        if (out.full()) break;
        put_one(one);
    }
    out.EndArray();
}

}  // namespace flamewire::profile
