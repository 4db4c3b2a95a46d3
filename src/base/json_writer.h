// Writes JSON with RapidJSON: answers, replies, side files and exports. Names from a target are arbitrary bytes, so keys
// and text become valid UTF-8, and NaN and infinity become 0. All calls can be chained.
// Each kind of value has two functions: in a list, and as a member.
#pragma once

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/decimal.h"
#include "base/utf8.h"

namespace flamewire {

// `value` / 10^`digits`, exactly: a time in ns as seconds has 9 digits. At most 18.
struct Decimal {
    std::int64_t value = 0;
    unsigned digits = 0;
};

// `Output` is one of RapidJSON's output streams.
template <class Output>
class BasicJsonWriter {
public:
    explicit BasicJsonWriter(Output& output) : writer_(output) {}
    BasicJsonWriter(const BasicJsonWriter&) = delete;
    BasicJsonWriter& operator=(const BasicJsonWriter&) = delete;

    BasicJsonWriter& object() { return writer_.StartObject(), *this; }
    BasicJsonWriter& object(std::string_view name) { return key(name).object(); }
    BasicJsonWriter& end_object() { return writer_.EndObject(), *this; }
    BasicJsonWriter& array() { return writer_.StartArray(), *this; }
    BasicJsonWriter& array(std::string_view name) { return key(name).array(); }
    BasicJsonWriter& end_array() { return writer_.EndArray(), *this; }
    BasicJsonWriter& key(std::string_view name) {
        return with_valid(name, [this](const char* text, rapidjson::SizeType size) { writer_.Key(text, size); });
    }

    BasicJsonWriter& text(std::string_view value) {
        return with_valid(value, [this](const char* text, rapidjson::SizeType size) { writer_.String(text, size); });
    }
    BasicJsonWriter& boolean(bool value) { return writer_.Bool(value), *this; }
    BasicJsonWriter& null() { return writer_.Null(), *this; }
    BasicJsonWriter& number(std::floating_point auto value) {
        return writer_.Double(std::isfinite(value) ? value : 0.0), *this;
    }
    BasicJsonWriter& number(Decimal value) {
        const std::string digits = decimal(value.value, value.digits);
        return writer_.RawValue(digits.data(), digits.size(), rapidjson::kNumberType), *this;
    }
    BasicJsonWriter& number(std::unsigned_integral auto value) { return writer_.Uint64(value), *this; }
    BasicJsonWriter& number(std::signed_integral auto value) { return writer_.Int64(value), *this; }
    // A part that is JSON already. It must be valid.
    BasicJsonWriter& raw(std::string_view json) {
        return writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType), *this;
    }
    BasicJsonWriter& value(const rapidjson::Value& parsed) { return parsed.Accept(writer_), *this; }

    BasicJsonWriter& member(std::string_view name, std::string_view value) { return key(name).text(value); }
    BasicJsonWriter& member(std::string_view name, const char* value) { return key(name).text(value); }
    BasicJsonWriter& member(std::string_view name, const std::string& value) { return key(name).text(value); }
    BasicJsonWriter& member(std::string_view name, bool value) { return key(name).boolean(value); }
    BasicJsonWriter& member(std::string_view name, std::nullptr_t) { return key(name).null(); }
    BasicJsonWriter& member(std::string_view name, Decimal value) { return key(name).number(value); }
    template <class T>
        requires std::integral<T> || std::floating_point<T>
    BasicJsonWriter& member(std::string_view name, T value) {
        return key(name).number(value);
    }
    // Nothing if there is no value.
    template <class T>
    BasicJsonWriter& member_if(std::string_view name, const std::optional<T>& value) {
        return value ? member(name, *value) : *this;
    }

    // `write` writes one element.
    template <class Range, class Write>
    BasicJsonWriter& list(std::string_view name, const Range& range, Write write) {
        array(name);
        for (const auto& element : range) write(element);
        return end_array();
    }
    BasicJsonWriter& texts(std::string_view name, const auto& range) {
        return list(name, range, [this](const auto& element) { this->text(element); });
    }
    BasicJsonWriter& numbers(std::string_view name, const auto& range) {
        return list(name, range, [this](auto element) { this->number(element); });
    }

private:
    template <class Write>
    BasicJsonWriter& with_valid(std::string_view text, Write write) {
        if (is_valid_utf8(text)) {
            write(text.data(), static_cast<rapidjson::SizeType>(text.size()));
        } else {
            const std::string repaired = valid_utf8(text);
            write(repaired.data(), static_cast<rapidjson::SizeType>(repaired.size()));
        }
        return *this;
    }

    rapidjson::Writer<Output> writer_;
};

struct JsonText {
    rapidjson::StringBuffer buffer;
};

// Writes to memory.
class JsonWriter : private JsonText, public BasicJsonWriter<rapidjson::StringBuffer> {
public:
    JsonWriter() : BasicJsonWriter(buffer) {}
    [[nodiscard]] std::string take() const { return {buffer.GetString(), buffer.GetSize()}; }
};

// Parsed JSON as text on one line.
inline std::string to_json(const rapidjson::Value& parsed) {
    JsonWriter json;
    json.value(parsed);
    return json.take();
}

}  // namespace flamewire
