// Writes the JSON of the server's answers, events and side files. It uses RapidJSON's Writer, makes text valid UTF-8
// (names from a target are arbitrary bytes), and replaces NaN and infinity with 0.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamewire::server {

class JsonWriter {
public:
    void object() { writer_.StartObject(); }
    void end_object() { writer_.EndObject(); }
    void array() { writer_.StartArray(); }
    void end_array() { writer_.EndArray(); }
    // Keys come from our own code and are always valid UTF-8.
    void key(std::string_view name) { writer_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size())); }
    void text(std::string_view value);
    void boolean(bool value) { writer_.Bool(value); }
    void null() { writer_.Null(); }
    void number(double value) { writer_.Double(std::isfinite(value) ? value : 0.0); }
    template <std::unsigned_integral T>
    void number(T value) {
        writer_.Uint64(value);
    }
    template <std::signed_integral T>
    void number(T value) {
        writer_.Int64(value);
    }
    // A piece of JSON that must be valid.
    void raw(std::string_view json) { writer_.RawValue(json.data(), json.size(), rapidjson::kObjectType); }

    void member(std::string_view name, std::string_view value) { key(name), text(value); }
    void member(std::string_view name, const char* value) { key(name), text(value); }
    void member(std::string_view name, const std::string& value) { key(name), text(value); }
    void member(std::string_view name, bool value) { key(name), boolean(value); }
    template <class T>
        requires std::is_arithmetic_v<T>
    void member(std::string_view name, T value) {
        key(name);
        number(value);
    }
    template <class Range, class Write>
    void list(std::string_view name, const Range& range, Write write) {
        key(name);
        array();
        for (const auto& element : range) write(element);
        end_array();
    }
    void texts(std::string_view name, const auto& range) {
        list(name, range, [this](const auto& element) { this->text(element); });
    }
    void numbers(std::string_view name, const auto& range) {
        list(name, range, [this](auto element) { this->number(element); });
    }

    [[nodiscard]] std::string take() const { return {buffer_.GetString(), buffer_.GetSize()}; }

private:
    rapidjson::StringBuffer buffer_;
    rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
};

// Formats nanoseconds since 1970, for example as 2026-11-20T21:30:05.123Z.
std::string iso_time(std::int64_t realtime_ns);
// The reverse; 0 if the text does not have that form.
std::int64_t parse_iso_time(std::string_view text);

}  // namespace flamewire::server
