// The fields of a tracepoint's data, and their values in a sample. Pure, and safe on any bytes. Source of the format
// files: Documentation/trace/events.rst; of dynamic fields: __data_loc and __rel_loc in include/trace/stages.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace flamewire::perf {

// A field as the kernel declares it.
struct TracepointField {
    std::string name;
    std::string type;  // "char[16]", "__data_loc char[]"
    std::uint16_t offset = 0, size = 0;
    bool is_signed = false;
    bool operator==(const TracepointField&) const = default;
};

// Parses a format file. Omits the common_* fields, which all tracepoints have.
std::vector<TracepointField> parse_tracepoint_format(std::string_view format);

// What follows "print fmt: ", which says how the kernel prints the fields; empty if it is missing or longer than 16 KiB.
std::string_view print_format_of(std::string_view format);

enum class ValueKind : std::uint8_t {
    unsigned_number,
    signed_number,  // in two's complement
    address,        // or another number that is usually printed as hexadecimal
    text,
    bytes,
};

// One value of each sample of an event. An array of up to 8 numbers has one for each element: "args[2]".
struct ValueField {
    enum class Place : std::uint8_t {
        fixed,           // `size` bytes at `offset` of the data
        data_loc,        // there are 32 bits: the length and, from the start of the data, the offset of the value
        rel_loc,         // the same, but the offset counts from the end of the 32 bits
        sample_address,  // Sample::address
    };
    std::string name;
    ValueKind kind = ValueKind::unsigned_number;
    Place place = Place::fixed;
    std::uint16_t offset = 0, size = 0;
    bool operator==(const ValueField&) const = default;
};
using ValueFields = std::vector<ValueField>;

// The values of the samples of an event, and how the kernel prints them.
struct SampleValues {
    ValueFields fields;
    std::string print_format;  // print_format_of()
};

inline constexpr std::size_t max_value_fields = 64;
// At most max_value_fields. Without the fields that repeat what the event's name or stack says. `print_format` tells which
// numbers are addresses.
ValueFields value_fields(const std::vector<TracepointField>& fields, std::string_view print_format = {});

// A number, or 0 if the data is too short. `address`: Sample::address.
std::uint64_t value_of(const ValueField& field, Bytes data, std::uint64_t address,
                       std::endian order = std::endian::native);
// A text or bytes. Texts end at the first NUL and at max_value_bytes.
inline constexpr std::size_t max_value_bytes = 1'024;
Bytes bytes_of(const ValueField& field, Bytes data, std::endian order = std::endian::native);

}  // namespace flamewire::perf
