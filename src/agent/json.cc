// Values that need more than one call.
#include "agent/json.h"

#include <algorithm>
#include <cmath>

#include "base/decimal.h"
#include "base/utf8.h"
#include "wire/control.h"

namespace flamewire::agent {

JsonObject& JsonObject::tenths(std::string_view name, double value) {
    return decimal(name, std::llround(value * 10), 1);
}

void JsonObject::put_decimal(std::int64_t value, unsigned digits) {
    const std::string text = flamewire::decimal(value, digits);
    writer_.RawValue(text.data(), text.size(), rapidjson::kNumberType);
}

void JsonObject::key(std::string_view name) {
    const bool plain =
        std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    const std::string text = plain ? std::string() : valid_utf8(name);
    const std::string_view sent = plain ? name : std::string_view(text);
    writer_.Key(sent.data(), static_cast<rapidjson::SizeType>(sent.size()));
}

void JsonObject::put(std::string_view value) {
    const std::string text = valid_utf8(value);
    writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

}  // namespace flamewire::agent
