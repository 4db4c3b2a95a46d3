#include "unwind/tables/frame_section.h"

#include <algorithm>
#include <utility>

#include "base/byte_reader.h"

namespace flamewire::unwind {
namespace {

constexpr std::uint32_t long_length = 0xffffffff, first_reserved_length = 0xfffffff0;
constexpr std::size_t longest_head = 20;  // 4 + 8 bytes of length, 8 bytes of id
// The bytes that a pass reads per entry. Enough for the head with its id, two pointers and a segment selector.
constexpr std::size_t pass_bytes = longest_head + 8 + 2 * 10;
constexpr std::size_t chunk_size = std::size_t{64} << 10;
// Far above what compilers emit.
constexpr std::uint64_t max_entry_size = std::uint64_t{1} << 20, max_common_size = std::uint64_t{1} << 10;
constexpr std::size_t max_pass_entries = std::size_t{16} << 20;
// Less than the real cost: an index is built once, and must not exhaust the work of the stack that first needs it.
constexpr std::uint64_t work_of_pass = 2;

}  // namespace

// An entry's header, decoded.
struct FrameSection::Head {
    std::uint64_t content = 0, end = 0;  // offsets
    bool is_common = false;
    std::uint64_t common = 0;  // offset of an FDE's CIE
    bool terminator = false;
};

FrameSection::FrameSection(ModuleFile& file, FileRange range, const FrameFormat& format)
    : file_(&file), range_(range), format_(format) {}

FrameSection::FrameSection(std::string bytes, std::uint64_t address, const FrameFormat& format)
    : file_(nullptr), range_{address, 0, bytes.size()}, format_(format), memory_(std::move(bytes)) {}

Bytes FrameSection::bytes(std::uint64_t offset, std::size_t size) {
    if (offset > range_.size || size > range_.size - offset) return {};
    if (file_ == nullptr) return as_bytes_view(memory_).subspan(static_cast<std::size_t>(offset), size);
    return file_->all(range_.offset + offset, size);
}

// `bytes` starts at `offset`. It has at least longest_head bytes, or extends to the end of the section.
std::optional<FrameSection::Head> FrameSection::read_head(Bytes bytes, std::uint64_t offset) const {
    ByteReader in(bytes, byte_order(format_.big_endian));
    std::uint64_t length = in.number(4);
    Head head;
    if (length == 0 && in.ok()) {
        head.terminator = true;
        head.end = offset + 4;
        return head;
    }
    const bool is_long = length == long_length;
    if (is_long)
        length = in.number(8);
    else if (length >= first_reserved_length)
        return std::nullopt;
    const std::uint64_t id_offset = offset + in.position();
    const std::size_t id_size = is_long ? 8 : 4;
    const std::uint64_t id = in.number(id_size);
    head.content = offset + in.position();
    if (!in.ok() || length < id_size || length > range_.size - id_offset) return std::nullopt;
    head.end = id_offset + length;
    if (format_.debug) {
        head.is_common = id == (is_long ? ~std::uint64_t{0} : long_length);
        head.common = id;
    } else {
        head.is_common = id == 0;
        head.common = id_offset - id;  // may wrap: then it is outside the section
    }
    return head;
}

bool FrameSection::read_extent(ByteReader& in, std::uint64_t offset, const Common& common,
                               FrameDescription& function) const {
    const CommonEntry& entry = common.entry;
    in.skip(entry.segment_size);
    const auto start = read_encoded_pointer(in, entry.fde_encoding, range_.address + offset + in.position(),
                                            entry.bases, entry.address_size);
    constexpr std::uint8_t format_mask = 0x0f;
    const auto size = read_encoded_pointer(in, entry.fde_encoding & format_mask, 0, entry.bases, entry.address_size);
    if (!start || !size || *size == 0 || *start + *size < *start) return false;
    function.start = *start;
    function.end = *start + *size;
    return true;
}

std::optional<FrameSection::Description> FrameSection::description_at(std::uint64_t offset) {
    if (offset >= range_.size) return std::nullopt;
    const auto head = read_head(
        bytes(offset, static_cast<std::size_t>(std::min<std::uint64_t>(longest_head, range_.size - offset))), offset);
    if (!head || head->terminator || head->is_common || head->end - head->content > max_entry_size) return std::nullopt;
    const Common& common = common_at(head->common);
    if (!common.good) return std::nullopt;
    const Bytes content = bytes(head->content, static_cast<std::size_t>(head->end - head->content));
    ByteReader in(content, byte_order(format_.big_endian));
    Description description;
    description.common = &common.entry;
    if (!read_extent(in, head->content, common, description.function)) return std::nullopt;
    if (common.entry.has_augmentation_data) in.skip(in.uleb());
    if (!in.ok()) return std::nullopt;
    description.function.instructions_address = range_.address + head->content + in.position();
    description.function.instructions = in.rest();
    return description;
}

const FrameSection::Common& FrameSection::common_at(std::uint64_t offset) {
    Common& common = commons_[static_cast<std::size_t>((offset >> 2) * 0x9e3779b1 >> 16) % commons_.size()];
    if (common.used && common.offset == offset) return common;
    common.offset = offset;
    common.used = true;
    common.good = false;
    if (offset >= range_.size) return common;
    const auto head = read_head(
        bytes(offset, static_cast<std::size_t>(std::min<std::uint64_t>(longest_head, range_.size - offset))), offset);
    if (head && !head->terminator && head->is_common && head->end - head->content <= max_common_size)
        common.good = parse_common(bytes(head->content, static_cast<std::size_t>(head->end - head->content)),
                                   head->content, common);
    return common;
}

bool FrameSection::parse_common(Bytes content, std::uint64_t offset, Common& common) const {
    ByteReader in(content, byte_order(format_.big_endian));
    CommonEntry& entry = common.entry = {};
    entry.address_size = format_.address_size;
    entry.bases = format_.bases;
    const std::uint8_t version = in.u8();
    if (version != 1 && version != 3 && version != 4) return false;
    std::string letters;
    while (const std::uint8_t letter = in.u8()) letters.push_back(static_cast<char>(letter));
    if (letters == "eh") {  // first releases of g++ 3: a pointer to its exception table
        in.skip(entry.address_size);
        letters.clear();
    }
    if (version == 4) {
        entry.address_size = in.u8();
        entry.segment_size = in.u8();
        if ((entry.address_size != 4 && entry.address_size != 8) || entry.segment_size > 8) return false;
    }
    entry.code_alignment = in.uleb();
    entry.data_alignment = in.sleb();
    const std::uint64_t return_column = version == 1 ? in.u8() : in.uleb();
    if (!in.ok() || return_column >= no_register) return false;
    entry.return_column = static_cast<std::uint8_t>(return_column);
    if (!parse_augmentation(in, offset, letters, entry) || !in.ok()) return false;
    common.instructions.assign(as_text(in.rest()));
    entry.instructions = as_bytes_view(common.instructions);
    return true;
}

bool FrameSection::parse_augmentation(ByteReader& in, std::uint64_t offset, std::string_view letters,
                                      CommonEntry& entry) const {
    if (letters == "armcc+") return true;  // set by Arm's own compiler if it follows DWARF
    entry.has_augmentation_data = letters.starts_with('z');
    if (!entry.has_augmentation_data) {
        // Without a length, only letters without data can be skipped.
        entry.signal_frame = letters.find('S') != std::string_view::npos;
        return letters.find_first_not_of("SBG") == std::string_view::npos;
    }
    const std::uint64_t size = in.uleb();
    const std::uint64_t here = range_.address + offset + in.position();
    ByteReader data(in.bytes(size), byte_order(format_.big_endian));
    letters.remove_prefix(1);
    for (; !letters.empty(); letters.remove_prefix(1)) {
        switch (letters.front()) {
            case 'R': entry.fde_encoding = data.u8(); break;
            case 'L': data.u8(); break;
            case 'P': {
                const std::uint8_t encoding = data.u8();
                const std::size_t before = data.position();
                if (!read_encoded_pointer(data, encoding, here + before, entry.bases, entry.address_size) &&
                    data.position() == before && encoding != pointer_omitted)
                    return false;
                break;
            }
            case 'S': entry.signal_frame = true; break;
            case 'B':         // aarch64: return addresses are signed with key B; masking is the same
            case 'G': break;  // aarch64: the function tags its stack memory
            default:
                // The size of an unknown letter's data is unknown. Keep the previous letters; fail if a pointer
                // encoding follows.
                return letters.find('R') == std::string_view::npos;
        }
    }
    return data.ok();
}

Bytes FrameSection::Pass::bytes(std::uint64_t offset, std::size_t size) {
    if (section_.file_ == nullptr) return section_.bytes(offset, size);
    if (offset < chunk_offset_ || offset - chunk_offset_ > chunk_.size() ||
        size > chunk_.size() - (offset - chunk_offset_)) {
        const std::uint64_t wanted = std::min<std::uint64_t>(chunk_size, section_.range_.size - offset);
        chunk_ = section_.file_->read_once(section_.range_.offset + offset, static_cast<std::size_t>(wanted));
        chunk_offset_ = offset;
        if (size > chunk_.size()) return {};
    }
    return as_bytes_view(chunk_).subspan(static_cast<std::size_t>(offset - chunk_offset_), size);
}

std::optional<FrameSection::Start> FrameSection::Pass::next() {
    while (offset_ < section_.range_.size && entries_ < max_pass_entries) {
        ++entries_;
        work_.add(work_of_pass);
        const std::uint64_t offset = offset_;
        const Bytes entry =
            bytes(offset, static_cast<std::size_t>(std::min<std::uint64_t>(pass_bytes, section_.range_.size - offset)));
        const auto head = section_.read_head(entry, offset);
        if (!head) break;
        if (head->terminator && section_.format_.ends_at_zero) break;
        offset_ = head->end;
        if (head->terminator || head->is_common) continue;
        const Common& common = section_.common_at(head->common);
        if (!common.good) continue;
        const std::uint64_t available = std::min<std::uint64_t>(head->end - offset, entry.size());
        const std::size_t skipped = static_cast<std::size_t>(head->content - offset);
        ByteReader in(entry.subspan(skipped, static_cast<std::size_t>(available) - skipped),
                      byte_order(section_.format_.big_endian));
        FrameDescription function;
        if (section_.read_extent(in, head->content, common, function)) return Start{function.start, offset};
    }
    offset_ = section_.range_.size;
    return std::nullopt;
}

}  // namespace flamewire::unwind
