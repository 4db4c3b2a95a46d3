// The two value forms that need more than one call.
#include "agent/json.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "wire/control.h"

namespace flamewire::agent {

JsonObject& JsonObject::tenths(std::string_view name, double value) {
    const long long rounded = std::llround(value * 10);
    const std::string digits =
        fmt::format("{}{}.{}", rounded < 0 ? "-" : "", std::llabs(rounded) / 10, std::llabs(rounded) % 10);
    key(name);
    writer_.RawValue(digits.data(), digits.size(), rapidjson::kNumberType);
    return *this;
}

void JsonObject::put(std::string_view value) {
    const std::string text = wire::valid_utf8(value);
    writer_.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

}  // namespace flamewire::agent
