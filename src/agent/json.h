// Writes JSON for replies. Text of the target (comms, command lines, paths) is arbitrary bytes, but JSON is UTF-8.
// Invalid UTF-8 is replaced by U+FFFD, so that a process name cannot make a reply unreadable.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flamewire::agent {

class JsonObject {
public:
    JsonObject() : writer_(buffer_) { writer_.StartObject(); }
    JsonObject(const JsonObject&) = delete;
    JsonObject& operator=(const JsonObject&) = delete;

    JsonObject& text(std::string_view name, std::string_view value) {
        key(name);
        put(value);
        return *this;
    }
    JsonObject& number(std::string_view name, std::uint64_t value) {
        key(name);
        writer_.Uint64(value);
        return *this;
    }
    JsonObject& signed_number(std::string_view name, std::int64_t value) {
        key(name);
        writer_.Int64(value);
        return *this;
    }
    // With one digit after the decimal point.
    JsonObject& tenths(std::string_view name, double value);
    // `value` / 10^`digits`, exactly: a time in ns as seconds has 9 digits. At most 18.
    JsonObject& decimal(std::string_view name, std::int64_t value, unsigned digits) {
        key(name);
        put_decimal(value, digits);
        return *this;
    }
    // Left out if there is no value.
    JsonObject& number_if(std::string_view name, std::optional<std::uint64_t> value) {
        return value ? number(name, *value) : *this;
    }
    JsonObject& flag(std::string_view name, bool value) {
        key(name);
        writer_.Bool(value);
        return *this;
    }
    JsonObject& null(std::string_view name) {
        key(name);
        writer_.Null();
        return *this;
    }
    JsonObject& texts(std::string_view name, std::span<const std::string> values) {
        key(name);
        writer_.StartArray();
        for (const std::string& value : values) put(value);
        writer_.EndArray();
        return *this;
    }
    JsonObject& numbers(std::string_view name, std::span<const std::uint32_t> values) {
        key(name);
        writer_.StartArray();
        for (const std::uint32_t value : values) writer_.Uint(value);
        writer_.EndArray();
        return *this;
    }
    // Only inside an array.
    JsonObject& number_element(std::uint64_t value) {
        writer_.Uint64(value);
        return *this;
    }
    JsonObject& decimal_element(std::int64_t value, unsigned digits) {
        put_decimal(value, digits);
        return *this;
    }
    JsonObject& object(std::string_view name) {
        key(name);
        writer_.StartObject();
        return *this;
    }
    JsonObject& array(std::string_view name) {
        key(name);
        writer_.StartArray();
        return *this;
    }
    // An object inside an array.
    JsonObject& element() {
        writer_.StartObject();
        return *this;
    }
    JsonObject& end_object() {
        writer_.EndObject();
        return *this;
    }
    JsonObject& end_array() {
        writer_.EndArray();
        return *this;
    }
    // Closes the outermost object.
    std::string finish() {
        writer_.EndObject();
        return {buffer_.GetString(), buffer_.GetSize()};
    }

private:
    // Keys can also be names of the target (devices), so they are checked like values.
    void key(std::string_view name);
    void put(std::string_view value);
    void put_decimal(std::int64_t value, unsigned digits);

    rapidjson::StringBuffer buffer_;
    rapidjson::Writer<rapidjson::StringBuffer> writer_;
};

}  // namespace flamewire::agent
