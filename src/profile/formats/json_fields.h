// Reads JSON by a table: where a value is in the document, and which member of an importer's reader gets it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "profile/formats/json_shape.h"

namespace flamewire::profile {

// What a list of whole numbers contains in place of other values.
inline constexpr std::uint32_t no_index = std::numeric_limits<std::uint32_t>::max();

inline void store_value(std::string& to, const JsonValue& value) { to = value.text; }
inline void store_value(double& to, const JsonValue& value) { to = value.number; }
inline void store_value(bool& to, const JsonValue& value) { to = value.number != 0; }
inline void store_value(std::uint32_t& to, const JsonValue& value) {
    to = static_cast<std::uint32_t>(value.whole(no_index, 0));
}
inline void store_value(std::vector<std::string>& to, const JsonValue& value) { to.emplace_back(value.text); }
inline void store_value(std::vector<double>& to, const JsonValue& value) { to.push_back(value.number); }
inline void store_value(std::vector<std::uint32_t>& to, const JsonValue& value) {
    to.push_back(static_cast<std::uint32_t>(value.whole(no_index, no_index)));
}

template <class Type, class Owner>
Owner owner_of(Type Owner::*);

// Stores a value in `member` of the object that `reader` is reading: reader.current(Owner*).
template <auto member, class Reader>
void set(Reader& reader, const JsonValue& value) {
    using Owner = decltype(owner_of(member));
    store_value(reader.current(static_cast<Owner*>(nullptr)).*member, value);
}

template <class Reader>
struct JsonField {
    std::string path;  // see JsonShape
    void (*value)(Reader&, const JsonValue&) = nullptr;
    // For an object or array. A place with `begin` and without `value` cannot have another value.
    void (*begin)(Reader&) = nullptr;
    void (*end)(Reader&) = nullptr;
    void (*key)(Reader&, std::string_view) = nullptr;  // for a "*"
    std::string same_as{};                             // see JsonShape
};

// Appends `added`, whose paths continue `path`.
template <class Reader>
void append(std::vector<JsonField<Reader>>& fields, const std::string& path, std::vector<JsonField<Reader>> added) {
    for (JsonField<Reader>& field : added) {
        field.path.insert(0, path);
        if (!field.same_as.empty()) field.same_as.insert(0, path);
        fields.push_back(std::move(field));
    }
}

template <class Reader>
class JsonFields final : public JsonSink {
public:
    // Refers to `fields` and `reader`.
    JsonFields(const std::vector<JsonField<Reader>>& fields, Reader& reader) : fields_(fields), reader_(reader) {}

    Result<JsonEnd> read(ImportJob& job) {
        std::vector<JsonShape::Place> places;
        places.reserve(fields_.size());
        for (const JsonField<Reader>& field : fields_)
            places.push_back({field.path, static_cast<int>(places.size()) + 1, field.same_as});
        return read_json(job, JsonShape(places), *this);
    }

private:
    bool value(int place, const JsonValue& value) override {
        const JsonField<Reader>& field = at(place);
        if (field.value != nullptr) field.value(reader_, value);
        return field.value != nullptr || field.begin == nullptr;
    }
    void key(int place, std::string_view name) override {
        if (const auto key = at(place).key) key(reader_, name);
    }
    bool begin(int place) override {
        if (const auto begin = at(place).begin) begin(reader_);
        return true;
    }
    bool end(int place) override {
        if (const auto end = at(place).end) end(reader_);
        return true;
    }
    [[nodiscard]] const JsonField<Reader>& at(int place) const { return fields_[static_cast<std::size_t>(place) - 1]; }

    const std::vector<JsonField<Reader>>& fields_;
    Reader& reader_;
};

}  // namespace flamewire::profile
