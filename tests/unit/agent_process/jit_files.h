// Perf maps and jitdumps, written piece by piece as a runtime does.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace flamewire::agent::test {

inline void put_bytes(std::string& out, const void* data, std::size_t size) {
    out.append(static_cast<const char*>(data), size);
}
template <class T>
void put_value(std::string& out, T value) {
    put_bytes(out, &value, sizeof(value));
}

// See tools/perf/Documentation/jitdump-specification.txt.
inline std::string jitdump_header(std::uint64_t flags = 0) {
    std::string out;
    put_value<std::uint32_t>(out, 0x4A695444);
    put_value<std::uint32_t>(out, 1);
    put_value<std::uint32_t>(out, 40);
    put_value<std::uint32_t>(out, 62);
    put_value<std::uint32_t>(out, 0);
    put_value<std::uint32_t>(out, 42);
    put_value<std::uint64_t>(out, 1);
    put_value<std::uint64_t>(out, flags);
    return out;
}
inline std::string jitdump_record(std::uint32_t kind, std::uint64_t time_ns, std::string_view fields) {
    std::string out;
    put_value(out, kind);
    put_value<std::uint32_t>(out, static_cast<std::uint32_t>(16 + fields.size()));
    put_value(out, time_ns);
    return out + std::string(fields);
}
inline std::string jitdump_load(std::uint64_t time_ns, std::uint64_t code, std::uint64_t size, std::string_view name) {
    std::string fields;
    put_value<std::uint64_t>(fields, 42);
    for (const std::uint64_t value : {code, code, size, std::uint64_t{1}}) put_value(fields, value);
    fields += name;
    fields += '\0';
    fields.append(size, '\x90');
    return jitdump_record(0, time_ns, fields);
}
inline std::string jitdump_move(std::uint64_t time_ns, std::uint64_t from, std::uint64_t to, std::uint64_t size) {
    std::string fields;
    put_value<std::uint64_t>(fields, 42);
    for (const std::uint64_t value : {to, from, to, size, std::uint64_t{1}}) put_value(fields, value);
    return jitdump_record(1, time_ns, fields);
}
// JIT_CODE_UNWINDING_INFO: `frames` is an .eh_frame, followed by an .eh_frame_hdr of `search_table` bytes.
inline std::string jitdump_unwinding(std::uint64_t time_ns, std::string_view frames, std::uint64_t search_table,
                                     std::uint64_t mapped) {
    std::string fields;
    for (const std::uint64_t value : {std::uint64_t{frames.size()}, search_table, mapped}) put_value(fields, value);
    return jitdump_record(4, time_ns, fields + std::string(frames));
}
struct DebugRow {
    std::uint64_t address;
    std::uint32_t line;
    std::string_view file;
};
inline std::string jitdump_lines(std::uint64_t time_ns, std::uint64_t code, const std::vector<DebugRow>& rows) {
    std::string fields;
    put_value(fields, code);
    put_value<std::uint64_t>(fields, rows.size());
    for (const DebugRow& row : rows) {
        put_value(fields, row.address);
        put_value(fields, row.line);
        put_value<std::uint32_t>(fields, 0);
        fields += row.file;
        fields += '\0';
    }
    return jitdump_record(2, time_ns, fields);
}

}  // namespace flamewire::agent::test
