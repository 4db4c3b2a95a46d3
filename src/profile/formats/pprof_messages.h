// Parses the messages of a profile.proto (field numbers: see pprof.h). Strings are views into the file, which must
// outlive them. protozero reports malformed input by exceptions, which pass through.
#pragma once

#include <protozero/pbf_reader.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace flamewire::profile::pprof_file {

// For protozero's tag_and_type(): tags of integers (varint), and of strings and messages (bytes).
constexpr std::uint32_t varint(std::uint32_t tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t bytes(std::uint32_t tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}
std::string_view view_of(protozero::pbf_reader& in);
protozero::pbf_reader message(std::string_view text);

// The file's string table. Other messages refer to strings by index. A missing string is empty.
class Texts {
public:
    void add(std::string_view text) { texts_.push_back(text); }
    [[nodiscard]] std::string_view at(std::int64_t index) const {
        const auto at = static_cast<std::uint64_t>(index);
        return at < texts_.size() ? texts_[at] : std::string_view{};
    }

private:
    std::vector<std::string_view> texts_;
};

struct SampleType {
    std::string_view type, unit;
};
struct Mapping {
    std::uint64_t id = 0, start = 0, offset = 0;
    std::string_view file, build_id;
};
struct Function {
    std::uint64_t id = 0;
    std::string_view name, file;  // name: the human-readable name, else the linker's name
};
struct Line {
    std::uint64_t function = 0, line = 0;
};
struct Location {
    std::uint64_t id = 0, mapping = 0, address = 0;
    std::vector<Line> lines;  // innermost first
};
struct Label {
    std::string_view key, text;
    std::int64_t number = 0;

    // The label's number, even if it is written as text; 0 if it does not fit 32 bits.
    [[nodiscard]] std::uint32_t whole() const;
};
struct Sample {
    std::vector<std::uint64_t> locations, values;  // locations: innermost first; values: one per sample type
    std::vector<Label> labels;
};

SampleType read_sample_type(std::string_view text, const Texts& texts);
Mapping read_mapping(std::string_view text, const Texts& texts);
Function read_function(std::string_view text, const Texts& texts);
Location read_location(std::string_view text);
// Reuses `sample` to avoid allocations.
void read_sample(std::string_view text, const Texts& texts, Sample& sample);

}  // namespace flamewire::profile::pprof_file
