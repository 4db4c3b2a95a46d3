#include "profile/formats/perf_data/header.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/byte_reader.h"
#include "perf/abi.h"
#include "profile/formats/perf_data/layout.h"

namespace flamewire::profile::perf_data {
namespace {

// Up to Linux 3.2 the magic was text, which is the same in both byte orders.
constexpr std::string_view little_endian_magic = "PERFILE2", big_endian_magic = "2ELIFREP", old_magic = "PERFFILE";
constexpr std::uint64_t stream_header_size = 16, file_header_size = 104;
// perf writes far less. These limits keep damaged sizes from allocating gigabytes.
constexpr std::uint64_t most_attribute_bytes = std::uint64_t{16} << 20, most_id_bytes = std::uint64_t{64} << 20,
                        most_feature_bytes = std::uint64_t{256} << 20;

struct Section {
    std::uint64_t offset = 0, size = 0;
};

Section read_section(ByteReader& fields) {
    Section section;
    section.offset = fields.u64();
    section.size = fields.u64();
    return section;
}

// Returns all bytes of a section, or an empty string if the file does not contain all of them.
Result<std::string> bytes_of(ImportSource& source, const Section& section, std::uint64_t most) {
    if (section.size > most || section.offset > source.size() || source.size() - section.offset < section.size)
        return std::string();
    std::string bytes(static_cast<std::size_t>(section.size), '\0');
    bytes.resize(TRY(source.read_at(section.offset, bytes)));
    if (bytes.size() != section.size) bytes.clear();
    return bytes;
}

// u32 length, then that many bytes with NULs at the end.
std::string text_of(ByteReader& fields) {
    const Bytes bytes = fields.bytes(fields.u32());
    const std::string_view text = as_text(bytes);
    return std::string(text.substr(0, text.find('\0')));
}

bool read_command_line(Machine& machine, ByteReader fields) {
    const std::uint32_t count = fields.u32();
    std::string line;
    for (std::uint32_t i = 0; i < count && fields.ok() && fields.remaining() != 0; ++i) {
        if (!line.empty()) line += ' ';
        line += text_of(fields);
    }
    if (fields.ok()) machine.command_line = std::move(line);
    return fields.ok();
}

// Reads event names, each with its attribute and its ids.
bool read_event_names(Header& header, ByteReader fields) {
    const std::uint32_t count = fields.u32(), attribute_size = fields.u32();
    for (std::uint32_t i = 0; i < count && fields.ok(); ++i) {
        const Bytes bytes = fields.bytes(attribute_size);
        const std::uint32_t id_count = fields.u32();
        const std::string name = text_of(fields);
        std::vector<std::uint64_t> ids;
        fields.words(id_count, ids);
        if (!fields.ok() || bytes.size() < perf::smallest_attribute) return false;
        const perf::Attribute described = perf::parse_attribute(bytes, header.order());
        const auto is_it = [&](const RecordedEvent& one) {
            return ids.empty() || one.ids.empty() ? one.type == described.type && one.config == described.config
                                                  : std::ranges::find(one.ids, ids.front()) != one.ids.end();
        };
        auto found = std::ranges::find_if(header.events, is_it);
        // Without ids, several events can have the same numbers. Then they are in the same order.
        if (count == header.events.size() && is_it(header.events[i])) found = header.events.begin() + i;
        if (found != header.events.end() && !name.empty()) found->name = plain_event_name(name);
    }
    return fields.ok();
}

bool read_build_ids(Header& header, Bytes content) {
    while (!content.empty()) {
        ByteReader fields(content, header.order());
        fields.skip(4);  // type
        const std::uint16_t misc = fields.u16(), size = fields.u16();
        if (!fields.ok() || size < perf::header_size || size > content.size()) return false;
        if (!read_build_id(header, misc, content.subspan(perf::header_size, size - perf::header_size))) return false;
        content = content.subspan(size);
    }
    return true;
}

bool read_clock(Machine& machine, ByteReader fields) {
    fields.skip(8);  // version, clock
    machine.wall_ns = static_cast<std::int64_t>(fields.u64());
    machine.wall_at_ns = fields.u64();
    return fields.ok();
}

Result<bool> read_attributes(ImportSource& source, Header& header, const Section& section, std::uint64_t entry_size) {
    constexpr std::uint64_t id_section_size = 16;
    const std::string bytes = TRY(bytes_of(source, section, most_attribute_bytes));
    if (entry_size < perf::smallest_attribute + id_section_size || bytes.size() < entry_size)
        return fail(ErrorCode::invalid,
                    "the perf.data file has no events, or its list of events is cut off or damaged");
    const Bytes all = as_bytes_view(bytes);
    std::uint64_t id_bytes = 0;
    for (std::uint64_t offset = 0; offset + entry_size <= all.size(); offset += entry_size) {
        const Bytes entry = all.subspan(offset, entry_size);
        RecordedEvent event(perf::parse_attribute(entry.first(entry_size - id_section_size), header.order()));
        ByteReader tail(entry.last(id_section_size), header.order());
        const Section id_section = read_section(tail);
        id_bytes += std::min(id_section.size, most_id_bytes);
        if (id_bytes > most_id_bytes) return fail(ErrorCode::invalid, "the perf.data file's events have too many ids");
        const std::string ids = TRY(bytes_of(source, id_section, most_id_bytes));
        ByteReader(as_bytes_view(ids), header.order()).words(ids.size() / 8, event.ids);
        header.events.push_back(std::move(event));
    }
    return true;
}

// The bits give the features of the file. A table with their sections follows the records.
Result<bool> read_features(ImportSource& source, Header& header, std::span<const std::uint64_t> bits) {
    for (unsigned feature = 0; feature < feature::count; ++feature)
        if ((bits[feature / 64] >> (feature % 64) & 1) != 0) header.features.push_back(feature);
    const std::uint64_t entry_size = 16, table = header.data_offset + header.data_size;
    const std::string bytes = TRY(bytes_of(source, {table, header.features.size() * entry_size}, most_feature_bytes));
    header.damaged_features = static_cast<unsigned>(header.features.size());
    if (bytes.size() != header.features.size() * entry_size) return true;
    ByteReader fields(as_bytes_view(bytes), header.order());
    for (const unsigned feature : header.features) {
        const Section section = read_section(fields);
        // Skip features that are not read: they can be large.
        if (feature == feature::simpleperf_files || feature == 1 || (feature > 29 && feature < 128)) {
            --header.damaged_features;
            continue;
        }
        const std::string content = TRY(bytes_of(source, section, most_feature_bytes));
        if (content.size() == section.size && read_feature(header, feature, as_bytes_view(content)))
            --header.damaged_features;
    }
    return true;
}

}  // namespace

bool is_perf_data(std::string_view beginning) {
    return beginning.starts_with(little_endian_magic) || beginning.starts_with(big_endian_magic) ||
           beginning.starts_with(old_magic);
}

Result<Header> read_header(ImportSource& source) {
    std::string beginning(file_header_size, '\0');
    beginning.resize(TRY(source.read_at(0, beginning)));
    if (!is_perf_data(beginning)) return fail(ErrorCode::invalid, "it is not a perf.data file");
    Header header;
    // The header's size follows the magic. Its first byte is 0 only in big-endian files.
    header.big_endian = beginning.starts_with(old_magic)
                            ? beginning.size() > old_magic.size() && beginning[old_magic.size()] == '\0'
                            : beginning.starts_with(big_endian_magic);
    ByteReader fields(as_bytes_view(beginning).subspan(little_endian_magic.size()), header.order());
    const std::uint64_t size = fields.u64();
    if (!fields.ok()) return fail(ErrorCode::invalid, "the perf.data file ends within its first 16 bytes");
    if (size == stream_header_size) {
        header.stream = true;
        header.data_offset = stream_header_size;
        header.data_size = source.size() - std::min(source.size(), stream_header_size);
        return header;
    }
    const std::uint64_t attribute_size = fields.u64();
    const Section events = read_section(fields), data = read_section(fields);
    (void)read_section(fields);  // event types of old versions
    // A bitmap in words of the machine that wrote the file.
    std::array<std::uint64_t, feature::count / 64> bits{};
    for (std::uint64_t& word : bits) word = fields.u64();
    if (size < file_header_size) bits = {};  // the bitmap exists since Linux 2.6.33
    // The words can have 32 bits. Every perf sets the bit for the host's name.
    if (header.order() != std::endian::native && (bits[0] >> feature::hostname & 1) == 0)
        for (std::uint64_t& word : bits) word = std::rotl(word, 32);
    if (!fields.ok()) return fail(ErrorCode::invalid, "the perf.data file ends within its header");
    TRY(read_attributes(source, header, events, attribute_size));
    header.data_offset = data.offset;
    header.data_size = data.size;
    const std::uint64_t rest = source.size() - std::min(source.size(), data.offset);
    // perf writes the size when it finishes. After a crash it is 0, and there are no features.
    if (data.size == 0 && rest != 0) {
        header.unfinished = true;
        header.data_size = rest;
    } else if (data.size > rest) {
        header.cut = true;
        header.data_size = rest;
    } else {
        TRY(read_features(source, header, bits));
    }
    return header;
}

bool read_feature(Header& header, unsigned feature, Bytes content) {
    Machine& machine = header.machine;
    ByteReader fields(content, header.order());
    switch (feature) {
        case feature::build_id: return read_build_ids(header, content);
        case feature::hostname: machine.host = text_of(fields); break;
        case feature::os_release: machine.kernel_release = text_of(fields); break;
        case feature::version: machine.perf_version = text_of(fields); break;
        case feature::arch: machine.arch = text_of(fields); break;
        case feature::cpus: {
            const std::uint32_t available = fields.u32(), online = fields.u32();
            machine.cpus = online != 0 ? online : available;
            break;
        }
        case feature::command_line: return read_command_line(machine, fields);
        case feature::event_desc: return read_event_names(header, fields);
        case feature::sample_time: machine.first_sample_ns = fields.u64(); break;
        case feature::clock_data: return read_clock(machine, fields);
        case feature::embedded_symbols: return decode_embedded_symbols(content, header.order(), header.embedded);
        default: break;
    }
    return fields.ok();
}

// struct perf_record_header_build_id: pid, 20 bytes, their number, 3 bytes, path.
bool read_build_id(Header& header, std::uint16_t misc, Bytes body) {
    ByteReader fields(body, header.order());
    fields.skip(4);
    const Bytes id = fields.bytes(20);
    std::size_t size = fields.u8();
    fields.skip(3);
    if ((misc & tool_misc::build_id_size) == 0 || size == 0 || size > id.size()) size = id.size();
    KnownBuildId known;
    known.path = fields.text();
    if (!fields.ok()) return false;
    known.build_id = as_text(id.first(size));
    // Older perf versions pad shorter ids with zeros.
    if ((misc & tool_misc::build_id_size) == 0)
        while (known.build_id.size() > 16 && known.build_id.ends_with(std::string_view("\0\0\0\0", 4)))
            known.build_id.resize(known.build_id.size() - 4);
    const std::uint16_t mode = misc & perf::misc::cpu_mode;
    known.kernel = mode == perf::misc::kernel;
    if (mode != perf::misc::guest_kernel && mode != perf::misc::guest_user)
        header.machine.build_ids.push_back(std::move(known));
    return true;
}

bool read_attribute_record(Header& header, Bytes body) {
    ByteReader fields(body, header.order());
    fields.skip(4);
    const std::uint32_t size = fields.u32();
    if (!fields.ok() || size < perf::smallest_attribute || size > body.size()) return false;
    RecordedEvent event(perf::parse_attribute(body.first(size), header.order()));
    ByteReader rest(body.subspan(size), header.order());
    rest.words(rest.remaining() / 8, event.ids);
    header.events.push_back(std::move(event));
    return true;
}

void read_event_type(Header& header, Bytes body) {
    ByteReader fields(body, header.order());
    const std::uint64_t config = fields.u64();
    const std::string_view name = fields.text();
    if (name.empty()) return;
    for (RecordedEvent& event : header.events)
        if (event.config == config && event.name.empty()) event.name = plain_event_name(name);
}

void read_event_update(Header& header, Bytes body) {
    constexpr std::uint64_t name_update = 2;
    ByteReader fields(body, header.order());
    const std::uint64_t what = fields.u64(), id = fields.u64();
    const std::string_view name = fields.text();
    if (what != name_update || name.empty()) return;
    for (RecordedEvent& event : header.events)
        if (std::ranges::find(event.ids, id) != event.ids.end()) event.name = plain_event_name(name);
}

}  // namespace flamewire::profile::perf_data
