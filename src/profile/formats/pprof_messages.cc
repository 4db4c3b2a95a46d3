#include "profile/formats/pprof_messages.h"

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

Line read_line(std::string_view text) {
    Line line;
    pbf_reader in = message(text);
    while (in.next()) {
        if (in.tag_and_type() == varint(1))
            line.function = in.get_uint64();
        else if (in.tag_and_type() == varint(2))
            line.line = in.get_uint64();
        else
            in.skip();
    }
    return line;
}

Label read_label(std::string_view text, const Texts& texts) {
    Label label;
    pbf_reader in = message(text);
    while (in.next()) switch (in.tag_and_type()) {
            case varint(1): label.key = texts.at(in.get_int64()); break;
            case varint(2): label.text = texts.at(in.get_int64()); break;
            case varint(3): label.number = in.get_int64(); break;
            default: in.skip();
        }
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
    while (in.next()) {
        if (in.tag_and_type() == varint(1))
            type.type = texts.at(in.get_int64());
        else if (in.tag_and_type() == varint(2))
            type.unit = texts.at(in.get_int64());
        else
            in.skip();
    }
    return type;
}

Mapping read_mapping(std::string_view text, const Texts& texts) {
    Mapping mapping;
    pbf_reader in = message(text);
    while (in.next()) switch (in.tag_and_type()) {
            case varint(1): mapping.id = in.get_uint64(); break;
            case varint(2): mapping.start = in.get_uint64(); break;
            case varint(4): mapping.offset = in.get_uint64(); break;
            case varint(5): mapping.file = texts.at(in.get_int64()); break;
            case varint(6): mapping.build_id = texts.at(in.get_int64()); break;
            default: in.skip();
        }
    return mapping;
}

Function read_function(std::string_view text, const Texts& texts) {
    Function function;
    std::string_view system_name;
    pbf_reader in = message(text);
    while (in.next()) switch (in.tag_and_type()) {
            case varint(1): function.id = in.get_uint64(); break;
            case varint(2): function.name = texts.at(in.get_int64()); break;
            case varint(3): system_name = texts.at(in.get_int64()); break;
            case varint(4): function.file = texts.at(in.get_int64()); break;
            default: in.skip();
        }
    if (function.name.empty()) function.name = system_name;
    return function;
}

Location read_location(std::string_view text) {
    Location location;
    pbf_reader in = message(text);
    while (in.next()) switch (in.tag_and_type()) {
            case varint(1): location.id = in.get_uint64(); break;
            case varint(2): location.mapping = in.get_uint64(); break;
            case varint(3): location.address = in.get_uint64(); break;
            case bytes(4): location.lines.push_back(read_line(view_of(in))); break;
            default: in.skip();
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
