#include "perf/tracepoint_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/byte_reader.h"

namespace flamewire::perf {
namespace {

constexpr std::size_t max_print_format = 16'384;
constexpr std::uint16_t max_array_values = 8;

// The number after `name` in a line such as "\tfield:int fd;\toffset:8;\tsize:4;\tsigned:1;".
std::uint16_t number_after(std::string_view line, std::string_view name) {
    const std::size_t at = line.find(name);
    std::uint16_t number = 0;
    if (at != std::string_view::npos)
        (void)std::from_chars(line.data() + at + name.size(), line.data() + line.size(), number);
    return number;
}

bool is_text(std::string_view type) {
    return type.find("char[") != std::string_view::npos && type.find("unsigned") == std::string_view::npos;
}

bool is_number(std::uint16_t size) { return size == 1 || size == 2 || size == 4 || size == 8; }

// The number of elements of "unsigned long[6]"; 0: not an array of numbers.
std::uint16_t array_length(const TracepointField& field) {
    if (!field.type.ends_with(']')) return 0;
    const std::uint16_t length = number_after(field.type, "[");
    return length != 0 && length <= max_array_values && field.size % length == 0 && is_number(field.size / length)
               ? length
               : std::uint16_t{0};
}

ValueKind number_kind(const TracepointField& field) {
    if (field.type.find('*') != std::string::npos) return ValueKind::address;
    return field.is_signed ? ValueKind::signed_number : ValueKind::unsigned_number;
}

// The kernel prints addresses of code with %pS, which needs a pointer.
bool printed_as_pointer(std::string_view name, std::string_view print_format) {
    const std::string cast = fmt::format("(void *)REC->{}", name);
    const std::size_t at = print_format.find(cast);
    const std::size_t end = at + cast.size();
    return at != std::string_view::npos && (end == print_format.size() || print_format[end] == ',');
}

ValueField value_field(const TracepointField& field) {
    ValueField value{field.name, ValueKind::bytes, ValueField::Place::fixed, field.offset, field.size};
    // An argument of a system call has the size of a register, whatever its type.
    if (field.type == "int" && field.size == 8) {
        value.offset = std::endian::native == std::endian::big ? std::uint16_t(field.offset + 4) : field.offset;
        value.size = 4;
        value.kind = ValueKind::signed_number;
        return value;
    }
    if (field.type.starts_with("__data_loc")) value.place = ValueField::Place::data_loc;
    if (field.type.starts_with("__rel_loc")) value.place = ValueField::Place::rel_loc;
    if (is_text(field.type))
        value.kind = ValueKind::text;
    else if (value.place == ValueField::Place::fixed && !field.type.ends_with(']') && is_number(field.size))
        value.kind = number_kind(field);
    return value;
}

}  // namespace

std::vector<TracepointField> parse_tracepoint_format(std::string_view format) {
    std::vector<TracepointField> fields;
    for (std::size_t at = 0; (at = format.find("field:", at)) != std::string_view::npos;) {
        at += 6;
        const std::string_view line = format.substr(at, format.find('\n', at) - at);
        std::string_view declared = line.substr(0, line.find(';'));
        std::string_view dimension;
        if (declared.ends_with(']')) {
            dimension = declared.substr(std::min(declared.rfind('['), declared.size()));
            declared.remove_suffix(dimension.size());
        }
        const std::string_view name = declared.substr(declared.find_last_of(" *") + 1);
        if (name.empty() || name.starts_with("common_")) continue;
        std::string_view type = declared.substr(0, declared.size() - name.size());
        while (type.ends_with(' ')) type.remove_suffix(1);
        fields.push_back({std::string(name), std::string(type).append(dimension), number_after(line, "offset:"),
                          number_after(line, "size:"), number_after(line, "signed:") != 0});
    }
    return fields;
}

std::string_view print_format_of(std::string_view format) {
    constexpr std::string_view begin = "print fmt: ";
    const std::size_t at = format.find(begin);
    if (at == std::string_view::npos) return {};
    std::string_view text = format.substr(at + begin.size());
    while (text.ends_with('\n')) text.remove_suffix(1);
    return text.size() <= max_print_format ? text : std::string_view();
}

ValueFields value_fields(const std::vector<TracepointField>& fields, std::string_view print_format) {
    ValueFields values;
    for (const TracepointField& field : fields) {
        if (field.name == "__syscall_nr" || field.name == "__probe_ip") continue;
        ValueField value = value_field(field);
        if (value.kind == ValueKind::unsigned_number && printed_as_pointer(field.name, print_format))
            value.kind = ValueKind::address;
        const std::uint16_t elements = value.kind == ValueKind::bytes ? array_length(field) : std::uint16_t{0};
        for (std::uint16_t i = 0; i < std::max<std::uint16_t>(elements, 1); ++i) {
            if (values.size() == max_value_fields) return values;
            values.push_back(value);
            if (elements == 0) continue;
            ValueField& element = values.back();
            element.name = fmt::format("{}[{}]", field.name, i);
            element.kind = number_kind(field);
            element.size = field.size / elements;
            element.offset = static_cast<std::uint16_t>(field.offset + i * element.size);
        }
    }
    return values;
}

std::uint64_t value_of(const ValueField& field, Bytes data, std::uint64_t address, std::endian order) {
    if (field.place == ValueField::Place::sample_address) return address;
    if (!is_number(field.size) || data.size() < std::size_t{field.offset} + field.size) return 0;
    const std::uint64_t number = load_number(data.data() + field.offset, field.size, order);
    if (field.kind != ValueKind::signed_number) return number;
    const unsigned unused_bits = 64 - 8U * field.size;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(number << unused_bits) >> unused_bits);
}

Bytes bytes_of(const ValueField& field, Bytes data, std::endian order) {
    std::size_t offset = field.offset, size = field.size;
    if (field.place != ValueField::Place::fixed) {
        if (data.size() < offset + 4) return {};
        ByteReader in(data.subspan(offset), order);
        const std::uint32_t location = in.u32();
        size = location >> 16;
        offset = (location & 0xffff) + (field.place == ValueField::Place::rel_loc ? offset + 4 : 0);
    }
    if (offset > data.size()) return {};
    Bytes bytes = data.subspan(offset, std::min({size, data.size() - offset, max_value_bytes}));
    if (field.kind == ValueKind::text) bytes = bytes.first(std::min(as_text(bytes).find('\0'), bytes.size()));
    return bytes;
}

}  // namespace flamewire::perf
