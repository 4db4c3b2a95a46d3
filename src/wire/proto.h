// Protobuf messages, each described once for writing and reading: `fields<Message>` is a tuple of fields in the order in
// which they are written. Readers throw Malformed or protozero::exception on invalid input; the decoders that use this
// header catch both. Adds to protozero what the messages of docs/wire.proto and docs/kept.proto need.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace flamewire::wire::proto {

using protozero::pbf_reader;
using protozero::pbf_writer;
using Tag = std::uint32_t;

// `what` becomes part of the error message.
struct Malformed {
    const char* what;
};

// `member` is a pointer to a member, or a function from the message to a reference.
template <class Member>
struct Field {
    Tag tag;
    Member member;
    std::size_t limit = 0;  // of a list or column: its most entries
    bool sparse = false;    // of a column: omitted if all its values are 0
};

// Specialized for each message.
template <class Message>
inline constexpr std::tuple<> fields{};

// The numbers of an enum: of(enumerator) and enumerator(number), for any number. Specialized for each enum.
template <class Enum>
struct EnumNumbers;

// The enumerators up to `last` have their values as numbers. Numbers of later versions become `otherwise`.
template <auto last, auto otherwise = decltype(last){}>
struct NumbersUpTo {
    static constexpr std::uint64_t of(decltype(last) value) { return static_cast<std::uint64_t>(value); }
    static constexpr decltype(last) enumerator(std::uint64_t number) {
        return number <= of(last) ? static_cast<decltype(last)>(number) : otherwise;
    }
};

// A packed column of varints: while it is written, and as it was read.
class PackedColumn {
public:
    void add(std::uint64_t value) {
        protozero::add_varint_to_buffer(&bytes_, value);
        if (value != 0) any_ = true;
    }
    void add_signed(std::int64_t value) { add(protozero::encode_zigzag64(value)); }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }
    [[nodiscard]] bool all_zero() const { return !any_; }

private:
    std::string bytes_;
    bool any_ = false;
};
using Column = std::vector<std::uint64_t>;

// --- writing ---

// proto3 omits scalars that are zero or empty.
inline void put_number(pbf_writer& out, Tag tag, std::uint64_t value) {
    if (value != 0) out.add_uint64(tag, value);
}

template <class Message>
void write(pbf_writer& out, const Message& message);

// Not a template, because the agent is built for size. Uses a separate buffer: a protozero sub-writer omits an empty
// message, so a table would lose an entry.
inline void put_message(pbf_writer& out, Tag tag, const void* message, void (*write)(pbf_writer&, const void*)) {
    std::string bytes;
    pbf_writer writer(bytes);
    write(writer, message);
    out.add_message(tag, bytes);
}
template <class Message>
void put_message(pbf_writer& out, Tag tag, const Message& message) {
    put_message(out, tag, &message,
                [](pbf_writer& to, const void* from) { write(to, *static_cast<const Message*>(from)); });
}

template <std::integral Number>
void put(pbf_writer& out, Tag tag, const Number& value) {
    put_number(out, tag, static_cast<std::uint64_t>(value));
}
template <class Enum>
    requires std::is_enum_v<Enum>
void put(pbf_writer& out, Tag tag, const Enum& value) {
    put_number(out, tag, EnumNumbers<Enum>::of(value));
}
inline void put(pbf_writer& out, Tag tag, const std::string& text) {
    if (!text.empty()) out.add_bytes(tag, text);
}
inline void put(pbf_writer& out, Tag tag, const PackedColumn& column) { out.add_bytes(tag, column.bytes()); }
inline void put(pbf_writer& out, Tag tag, const std::vector<std::uint32_t>& numbers) {
    if (!numbers.empty()) out.add_packed_uint32(tag, numbers.begin(), numbers.end());
}
inline void put(pbf_writer& out, Tag tag, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) out.add_bytes(tag, text);
}
template <std::size_t size>
void put(pbf_writer& out, Tag tag, const std::array<std::uint8_t, size>& id) {
    out.add_bytes(tag, reinterpret_cast<const char*>(id.data()), size);
}
template <class Message>
void put(pbf_writer& out, Tag tag, const std::vector<Message>& messages) {
    for (const Message& message : messages) put_message(out, tag, message);
}
template <class Message>
void put(pbf_writer& out, Tag tag, const std::optional<Message>& message) {
    if (message) put_message(out, tag, *message);
}
// Omits a message that has only default values.
template <class Message>
void put(pbf_writer& out, Tag tag, const Message& message) {
    if (!(message == Message{})) put_message(out, tag, message);
}

template <class Member, class Value>
void put_field(pbf_writer& out, const Field<Member>& field, const Value& value) {
    if constexpr (std::is_same_v<Value, PackedColumn>)
        if (field.sparse && value.all_zero()) return;
    put(out, field.tag, value);
}

// A value with a function columns_of() is written as the message that it returns.
template <class Message>
void write(pbf_writer& out, const Message& message) {
    if constexpr (requires { columns_of(message); }) {
        write(out, columns_of(message));
    } else {
        const auto write_all = [&](const auto&... field) {
            (put_field(out, field, std::invoke(field.member, message)), ...);
        };
        std::apply(write_all, fields<Message>);
    }
}

// --- reading ---

constexpr std::uint32_t varint(Tag tag) { return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint); }
constexpr std::uint32_t bytes(Tag tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}

// Throws Malformed if the number has more than 32 bits.
inline std::uint32_t narrow(std::uint64_t value) {
    if (value > std::numeric_limits<std::uint32_t>::max()) throw Malformed{"a number is too large for its field"};
    return static_cast<std::uint32_t>(value);
}

// Adds an entry. Throws Malformed if the list already has `limit` entries.
template <class T>
T& append(std::vector<T>& list, std::size_t limit) {
    if (list.size() >= limit) throw Malformed{"a list is longer than a batch may have"};
    return list.emplace_back();
}

template <std::integral Number>
void read_value(pbf_reader& in, std::size_t /*limit*/, Number& value) {
    const std::uint64_t number = in.get_uint64();
    if constexpr (std::is_same_v<Number, bool>)
        value = number != 0;  // get_bool() would read past the end of truncated input
    else if constexpr (std::is_same_v<Number, std::uint32_t>)
        value = narrow(number);
    else
        value = static_cast<Number>(number);
}
template <class Enum>
    requires std::is_enum_v<Enum>
void read_value(pbf_reader& in, std::size_t /*limit*/, Enum& value) {
    value = EnumNumbers<Enum>::enumerator(in.get_uint64());
}
inline void read_value(pbf_reader& in, std::size_t /*limit*/, std::string& text) {
    const protozero::data_view view = in.get_view();
    text.assign(view.data(), view.size());
}
inline void read_value(pbf_reader& in, std::size_t limit, Column& column) {
    for (const std::uint64_t value : in.get_packed_uint64()) append(column, limit) = value;
}
inline void read_value(pbf_reader& in, std::size_t limit, std::vector<std::uint32_t>& numbers) {
    for (const std::uint64_t value : in.get_packed_uint64()) append(numbers, limit) = narrow(value);
}
inline void read_value(pbf_reader& in, std::size_t limit, std::vector<std::string>& texts) {
    read_value(in, limit, append(texts, limit));
}

template <std::size_t size>
void read_value(pbf_reader& in, std::size_t /*limit*/, std::array<std::uint8_t, size>& id) {
    const protozero::data_view view = in.get_view();
    if (view.size() != size) throw Malformed{"an id of the wrong length"};
    std::memcpy(id.data(), view.data(), size);
}

template <class Message>
Message read(pbf_reader in);

template <class Message>
void read_value(pbf_reader& in, std::size_t /*limit*/, Message& message) {
    message = read<Message>(in.get_message());
}
// is_known(message): false for a message that only later versions understand. It is left out.
template <class Message>
void read_value(pbf_reader& in, std::size_t limit, std::vector<Message>& messages) {
    Message message = read<Message>(in.get_message());
    if constexpr (requires { is_known(message); })
        if (!is_known(message)) return;
    append(messages, limit) = std::move(message);
}
template <class Message>
void read_value(pbf_reader& in, std::size_t /*limit*/, std::optional<Message>& message) {
    message = read<Message>(in.get_message());
}

// Reads the current field of `in` if it has this tag.
template <class Value>
bool read_if(pbf_reader& in, Tag tag, std::size_t limit, Value& value) {
    constexpr bool number = std::is_integral_v<Value> || std::is_enum_v<Value>;
    if (in.tag_and_type() != (number ? varint(tag) : bytes(tag))) return false;
    read_value(in, limit, value);
    return true;
}

// Reads all fields of a message.
template <class Message>
void read_fields(pbf_reader in, Message& message) {
    const auto read_one = [&](const auto&... field) {
        return (read_if(in, field.tag, field.limit, std::invoke(field.member, message)) || ...);
    };
    while (in.next())
        if (!std::apply(read_one, fields<Message>)) in.skip();
}

// A value with a function read_columns() is read by it. check(message) throws Malformed if the fields contradict.
template <class Message>
Message read(pbf_reader in) {
    Message message;
    if constexpr (requires { read_columns(in, message); }) {
        read_columns(in, message);
    } else {
        read_fields(in, message);
        if constexpr (requires { check(message); }) check(message);
    }
    return message;
}

}  // namespace flamewire::wire::proto
