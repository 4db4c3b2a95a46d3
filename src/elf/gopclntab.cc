#include "elf/gopclntab.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"

namespace flamewire::elf {
namespace {

constexpr std::uint32_t magic_1_2 = 0xfffffffb, magic_1_16 = 0xfffffffa, magic_1_18 = 0xfffffff0,
                        magic_1_20 = 0xfffffff1;
// funcFlag_TOPFRAME and funcFlag_SPWRITE of Go's src/runtime/symtab.go, since 1.17.
constexpr std::uint8_t flag_outermost = 1, flag_switches_stacks = 2;
constexpr std::size_t max_name = 4096;
// Limit for one function. Go's largest have a few thousand.
constexpr std::size_t max_values = 1 << 17;

std::uint64_t number_in(std::span<const std::byte> bytes, bool big_endian) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[big_endian ? i : bytes.size() - 1 - i]);
    return value;
}

// Reads the bytes of one function's values in small blocks. A read past the table's end returns 0, which ends values.
class ValueBytes {
public:
    ValueBytes(const GoPclntab::Reader& read, std::uint64_t offset, std::uint64_t end)
        : read_(read), offset_(offset), end_(end) {}

    std::uint8_t next() {
        if (at_ == filled_) fill();
        return at_ < filled_ ? std::to_integer<std::uint8_t>(bytes_[at_++]) : std::uint8_t{0};
    }
    // At most 32 bits. Higher bits of a damaged number are dropped.
    std::uint32_t varint() {
        std::uint32_t value = 0;
        for (unsigned shift = 0; shift < 35; shift += 7) {
            const std::uint8_t byte = next();
            value |= static_cast<std::uint32_t>(std::uint64_t{byte & 0x7fu} << shift);
            if ((byte & 0x80) == 0) break;
        }
        return value;
    }

private:
    void fill() {
        at_ = filled_ = 0;
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes_.size(), end_ - offset_));
        if (size == 0 || !read_(offset_, std::span(bytes_).first(size))) return;
        offset_ += size;
        filled_ = size;
    }

    const GoPclntab::Reader& read_;
    std::uint64_t offset_, end_;
    std::array<std::byte, 64> bytes_;
    std::size_t at_ = 0, filled_ = 0;
};

}  // namespace

std::optional<GoPclntab> GoPclntab::open(Reader read, std::uint64_t size, bool big_endian) {
    GoPclntab table;
    table.read_ = std::move(read);
    table.size_ = size;
    table.big_endian_ = big_endian;
    if (!table.read_header()) return std::nullopt;
    return table;
}

std::optional<std::uint64_t> GoPclntab::number(std::uint64_t offset, std::size_t size) const {
    std::array<std::byte, 8> bytes{};
    if (offset > size_ || size_ - offset < size || !read_(offset, std::span(bytes).first(size))) return std::nullopt;
    return number_in(std::span(bytes).first(size), big_endian_);
}

bool GoPclntab::read_header() {
    std::array<std::byte, 8> head{};
    if (size_ < head.size() || !read_(0, head)) return false;
    switch (number_in(std::span(head).first(4), big_endian_)) {
        case magic_1_2: version_ = Version::go1_2; break;
        case magic_1_16: version_ = Version::go1_16; break;
        case magic_1_18: version_ = Version::go1_18; break;
        case magic_1_20: version_ = Version::go1_20; break;
        default: return false;
    }
    quantum_ = std::to_integer<std::uint8_t>(head[6]);
    word_size_ = std::to_integer<std::uint8_t>(head[7]);
    if (head[4] != std::byte{0} || head[5] != std::byte{0}) return false;
    if ((quantum_ != 1 && quantum_ != 2 && quantum_ != 4) || (word_size_ != 4 && word_size_ != 8)) return false;
    field_size_ = version_ >= Version::go1_18 ? 4 : word_size_;

    bool whole = true;
    const auto word = [&](unsigned position) {
        const auto value = number(8 + std::uint64_t{position} * word_size_, word_size_);
        whole &= value.has_value();
        return value.value_or(0);
    };
    const auto part = [&](unsigned position) {
        const std::uint64_t offset = word(position);
        whole &= offset <= size_;
        return offset;
    };
    const std::uint64_t count = word(0);
    if (version_ == Version::go1_2) {
        index_ = 8 + std::uint64_t{word_size_};  // all offsets are relative to the table
    } else {
        unsigned next = 2;
        if (version_ >= Version::go1_18) text_start_ = word(next++);
        names_ = part(next++);
        units_ = part(next++);
        files_ = part(next++);
        values_ = part(next++);
        functions_ = index_ = part(next);
    }
    if (!whole || count > (size_ - std::min(index_, size_)) / (2 * std::uint64_t{field_size_})) return false;
    count_ = static_cast<std::size_t>(count);
    if (version_ == Version::go1_2) {
        const auto files = number(index_ + (2 * std::uint64_t{count_} + 1) * field_size_, 4);
        if (!files || *files > size_) return false;
        files_ = *files;
    }
    return true;
}

std::optional<std::uint64_t> GoPclntab::text_start_at() const {
    if (version_ < Version::go1_18) return std::nullopt;
    return 8 + 2 * std::uint64_t{word_size_};
}

// The index has one more entry after the last function, with its end.
std::optional<std::uint64_t> GoPclntab::start_of(std::size_t position) const {
    const auto start = number(index_ + 2 * std::uint64_t{position} * field_size_, field_size_);
    if (!start || version_ < Version::go1_18) return start;
    return *start + text_start_;
}

std::optional<GoPclntab::Function> GoPclntab::function(std::size_t position) const {
    if (position >= count_) return std::nullopt;
    const auto start = start_of(position), end = start_of(position + 1);
    const auto offset = number(index_ + (2 * std::uint64_t{position} + 1) * field_size_, field_size_);
    if (!start || !end || !offset || *end <= *start || *offset > size_) return std::nullopt;

    // The entry repeats the function's start. Otherwise *offset does not point to an entry.
    const auto repeated = number(functions_ + *offset, field_size_);
    if (!repeated || *repeated != *start - (version_ >= Version::go1_18 ? text_start_ : 0)) return std::nullopt;

    // 32-bit fields follow: name, args, deferreturn, stack depth, file, line, number of PCDATA; since 1.16 the unit;
    // since 1.20 the first line. Then bytes: id, flags, padding, number of FUNCDATA.
    const std::uint64_t fields = functions_ + *offset + field_size_;
    const std::size_t words = version_ == Version::go1_2 ? 7 : version_ == Version::go1_20 ? 9 : 8;
    std::array<std::byte, 40> bytes{};
    const std::size_t size = words * 4 + 4;
    if (fields > size_ || size_ - fields < size || !read_(fields, std::span(bytes).first(size))) return std::nullopt;
    const auto field = [&](std::size_t number) {
        return static_cast<std::uint32_t>(number_in(std::span(bytes).subspan(number * 4, 4), big_endian_));
    };
    Function function{.start = *start,
                      .end = *end,
                      .name = field(0),
                      .unit = version_ == Version::go1_2 ? 0 : field(7),
                      .stack_depth = field(3),
                      .file = field(4),
                      .line = field(5)};
    const auto flags = std::to_integer<std::uint8_t>(bytes[words * 4 + 1]);
    if (version_ != Version::go1_2) {
        function.is_outermost = (flags & flag_outermost) != 0;
        function.switches_stacks = (flags & flag_switches_stacks) != 0;
    }
    function.values = field(6);
    function.values_at = fields + size;
    function.data = std::to_integer<std::uint8_t>(bytes[words * 4 + 3]);
    function.data_at = function.values_at + std::uint64_t{function.values} * 4;
    if (function.data_at > size_) return std::nullopt;
    return function;
}

std::optional<GoPclntab::Function> GoPclntab::function_at(std::uint64_t address) const {
    const auto first = count_ == 0 ? std::nullopt : start_of(0);
    if (!first || address < *first) return std::nullopt;
    std::size_t low = 0, high = count_;  // start_of(low) <= address; function `high` starts after it
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        const auto start = start_of(middle);
        if (!start) return std::nullopt;
        (*start <= address ? low : high) = middle;
    }
    auto found = function(low);
    if (!found || address >= found->end) return std::nullopt;
    return found;
}

// Values are pairs of varints: the change of the value, and the length of its address range. 0 ends the list.
std::optional<GoPclntab::Value> GoPclntab::value_at(std::uint32_t values, const Function& function,
                                                    std::uint64_t address) const {
    if (values == 0 || values > size_ - values_ || address < function.start || address >= function.end)
        return std::nullopt;
    ValueBytes bytes(read_, values_ + values, size_);
    Value value{.value = -1, .start = function.start, .end = function.start};
    for (std::size_t count = 0; count < max_values; ++count) {
        const std::uint32_t change = bytes.varint();
        if (change == 0 && count != 0) return std::nullopt;
        const std::uint32_t difference = (change & 1) != 0 ? ~(change >> 1) : change >> 1;
        value.value = static_cast<std::int32_t>(static_cast<std::uint32_t>(value.value) + difference);
        const std::uint64_t length = std::uint64_t{bytes.varint()} * quantum_;
        if (length == 0) return std::nullopt;
        value.start = value.end;
        value.end += std::min(length, function.end - value.end);
        if (address < value.end) return value;
    }
    return std::nullopt;
}

std::string GoPclntab::text_at(std::uint64_t offset) const {
    std::string text;
    std::array<char, 64> bytes;
    while (offset < size_ && text.size() < max_name) {
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), size_ - offset));
        if (!read_(offset, std::as_writable_bytes(std::span(bytes).first(size)))) break;
        const auto end = std::find(bytes.begin(), bytes.begin() + size, '\0');
        text.append(bytes.begin(), end);
        if (end != bytes.begin() + size) return text;
        offset += size;
    }
    return {};
}

// The values of the stack depth end at the last instruction. Functions that the linker generated have none.
std::uint64_t GoPclntab::code_end(const Function& function) const {
    if (function.stack_depth == 0 || function.stack_depth > size_ - values_) return function.end;
    ValueBytes bytes(read_, values_ + function.stack_depth, size_);
    std::uint64_t end = function.start;
    for (bool first = true; end < function.end; first = false) {
        if (bytes.varint() == 0 && !first) break;
        const std::uint64_t length = std::uint64_t{bytes.varint()} * quantum_;
        if (length == 0) break;
        end += std::min(length, function.end - end);
    }
    return end == function.start ? function.end : end;
}

std::string GoPclntab::file_name(const Function& function, std::int32_t file) const {
    constexpr std::uint32_t left_out = 0xffffffff;
    const auto index = static_cast<std::uint32_t>(file);
    if (file < 0 || function.unit == left_out || (version_ == Version::go1_2 && file == 0)) return {};
    const std::uint64_t at = version_ == Version::go1_2 ? files_ : units_;
    const auto offset = number(at + 4 * (std::uint64_t{function.unit} + index), 4);
    if (!offset || *offset == left_out) return {};
    return text_at(version_ == Version::go1_2 ? *offset : files_ + *offset);
}

// FUNCDATA 3 is the function's inline tree, an array. PCDATA 2 maps an address to an index in it.
std::optional<GoPclntab::InlinedCall> GoPclntab::inlined_call(const Function& function, std::uint64_t address,
                                                              const Reader& function_data) const {
    constexpr std::uint32_t tree_data = 3, position_values = 2, no_data = 0xffffffff;
    if (version_ < Version::go1_18 || function.data <= tree_data || function.values <= position_values)
        return std::nullopt;
    const auto tree = number(function.data_at + 4 * std::uint64_t{tree_data}, 4);
    const auto values = number(function.values_at + 4 * std::uint64_t{position_values}, 4);
    if (!tree || *tree == no_data || !values) return std::nullopt;
    const auto position = value_at(static_cast<std::uint32_t>(*values), function, address);
    if (!position || position->value < 0) return std::nullopt;

    // Up to 1.19: parent, id and padding (4 bytes), file, line, name, caller. Since 1.20: id and padding (4 bytes),
    // name, caller, first line. The latter is from Go's src/runtime/symtabinl.go and untested on 1.20 or later.
    const bool since_1_20 = version_ >= Version::go1_20;
    const std::size_t size = since_1_20 ? 16 : 20, name_at_byte = since_1_20 ? 4 : 12;
    std::array<std::byte, 20> entry{};
    if (!function_data(*tree + size * static_cast<std::uint64_t>(position->value), std::span(entry).first(size)))
        return std::nullopt;
    const auto field = [&](std::size_t at) { return number_in(std::span(entry).subspan(at, 4), big_endian_); };
    InlinedCall call{static_cast<std::uint32_t>(field(name_at_byte)), function.start + field(name_at_byte + 4)};
    // Names are stored back to back, so a name starts at 0 or after a zero byte. Otherwise this is not an inline tree.
    const auto before = call.name == 0 ? 0 : number(names_ + call.name - 1, 1);
    if (!before || *before != 0 || call.caller >= function.end) return std::nullopt;
    return call;
}

}  // namespace flamewire::elf
