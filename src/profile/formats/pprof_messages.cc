#include "profile/formats/pprof_messages.h"

#include <initializer_list>
#include <limits>

namespace flamewire::profile::pprof_file {
namespace {

using protozero::pbf_reader;

// Appends a repeated number, packed or not.
void append(pbf_reader& in, std::vector<std::uint64_t>& to) {
    if (in.wire_type() == protozero::pbf_wire_type::varint) {
        to.push_back(in.get_uint64());
        return;
    }
    for (const std::uint64_t value : in.get_packed_uint64()) to.push_back(value);
}

template <class Value>
struct Field {
    std::uint32_t tag;
    Value* to;
};

// Reads a field into the number or the text with its tag. Skips other fields.
void read_field(pbf_reader& in, std::initializer_list<Field<std::uint64_t>> numbers,
                std::initializer_list<Field<std::string_view>> strings = {}, const Texts& texts = {}) {
    for (const auto& [tag, to] : numbers)
        if (in.tag_and_type() == varint(tag)) {
            *to = in.get_uint64();
            return;
        }
    for (const auto& [tag, to] : strings)
        if (in.tag_and_type() == varint(tag)) {
            *to = texts.at(in.get_int64());
            return;
        }
    in.skip();
}

Line read_line(std::string_view text) {
    Line line;
    pbf_reader in = message(text);
    while (in.next()) read_field(in, {{1, &line.function}, {2, &line.line}});
    return line;
}

Label read_label(std::string_view text, const Texts& texts) {
    Label label;
    pbf_reader in = message(text);
    std::uint64_t number = 0;
    while (in.next()) read_field(in, {{3, &number}}, {{1, &label.key}, {2, &label.text}}, texts);
    label.number = static_cast<std::int64_t>(number);
    return label;
}

}  // namespace

std::string_view view_of(pbf_reader& in) {
    const protozero::data_view view = in.get_view();
    return {view.data(), view.size()};
}

pbf_reader message(std::string_view text) { return pbf_reader(text.data(), text.size()); }

std::uint32_t Label::whole() const {
    constexpr std::uint64_t largest = std::numeric_limits<std::uint32_t>::max();
    std::uint64_t value = static_cast<std::uint64_t>(number);
    if (!text.empty()) {
        value = 0;
        for (const char c : text) {
            if (c < '0' || c > '9' || value > largest) return 0;
            value = value * 10 + static_cast<std::uint64_t>(c - '0');
        }
    }
    return value <= largest ? static_cast<std::uint32_t>(value) : 0;
}

SampleType read_sample_type(std::string_view text, const Texts& texts) {
    SampleType type;
    pbf_reader in = message(text);
    while (in.next()) read_field(in, {}, {{1, &type.type}, {2, &type.unit}}, texts);
    return type;
}

Mapping read_mapping(std::string_view text, const Texts& texts) {
    Mapping mapping;
    pbf_reader in = message(text);
    while (in.next())
        read_field(in, {{1, &mapping.id}, {2, &mapping.start}, {4, &mapping.offset}},
                   {{5, &mapping.file}, {6, &mapping.build_id}}, texts);
    return mapping;
}

Function read_function(std::string_view text, const Texts& texts) {
    Function function;
    std::string_view system_name;
    pbf_reader in = message(text);
    while (in.next())
        read_field(in, {{1, &function.id}}, {{2, &function.name}, {3, &system_name}, {4, &function.file}}, texts);
    if (function.name.empty()) function.name = system_name;
    return function;
}

Location read_location(std::string_view text) {
    Location location;
    pbf_reader in = message(text);
    while (in.next()) {
        if (in.tag_and_type() == bytes(4))
            location.lines.push_back(read_line(view_of(in)));
        else
            read_field(in, {{1, &location.id}, {2, &location.mapping}, {3, &location.address}});
    }
    return location;
}

void read_sample(std::string_view text, const Texts& texts, Sample& sample) {
    sample.locations.clear();
    sample.values.clear();
    sample.labels.clear();
    pbf_reader in = message(text);
    while (in.next()) switch (in.tag_and_type()) {
            case varint(1):
            case bytes(1): append(in, sample.locations); break;
            case varint(2):
            case bytes(2): append(in, sample.values); break;
            case bytes(3): sample.labels.push_back(read_label(view_of(in), texts)); break;
            default: in.skip();
        }
}

}  // namespace flamewire::profile::pprof_file
