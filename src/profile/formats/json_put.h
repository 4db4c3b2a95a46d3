// Members of JSON objects, with names as valid text.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "profile/formats/text.h"

namespace flamewire::profile {

using JsonOutput = rapidjson::Writer<rapidjson::StringBuffer>;

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
    for (const auto& one : list) put_one(one);
    out.EndArray();
}

}  // namespace flamewire::profile
