#include "unwind/module_tables.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "unwind/call_frame.h"
#include "unwind/compressed_section.h"
#include "unwind/dwarf_cursor.h"
#include "unwind/exidx.h"
#include "unwind/frame_index.h"
#include "unwind/frame_section.h"
#include "unwind/module_file.h"
#include "unwind/search_table.h"

namespace flamewire::unwind {
namespace {

// ELF constants: gABI, chapters 4 and 5; LSB (GNU_EH_FRAME); ELF for the Arm Architecture (EXIDX).
constexpr std::uint16_t machine_386 = 3, machine_arm = 40, machine_x86_64 = 62, machine_aarch64 = 183;
constexpr std::uint16_t type_relocatable = 1;
constexpr std::uint32_t segment_eh_frame = 0x6474e550, segment_exidx = 0x70000001;
constexpr std::uint32_t section_nobits = 8;
constexpr std::uint64_t section_allocated = 2, section_executable = 4, section_tls = 0x400, section_compressed = 0x800;

// A decompressed .debug_frame stays in memory while its module does.
constexpr std::size_t max_decompressed = std::size_t{16} << 20;
constexpr std::size_t max_code_ranges = 64;

struct AddressRange {
    std::uint64_t start = 0, end = 0;
    [[nodiscard]] bool contains(std::uint64_t address) const { return address >= start && address < end; }
};

std::optional<Arch> arch_of(const elf::Header& header) {
    switch (header.machine) {
        case machine_x86_64:
            return Arch::x86_64;
        case machine_386:
            return Arch::x86;
        case machine_aarch64:
            return Arch::aarch64;
        case machine_arm:
            return Arch::arm;
        default:
            return std::nullopt;
    }
}

const elf::Section* find_section(const std::vector<elf::Section>& sections, std::string_view name) {
    const auto found = std::find_if(sections.begin(), sections.end(), [&](const elf::Section& section) {
        return section.name == name && section.type != section_nobits && section.size != 0;
    });
    return found == sections.end() ? nullptr : &*found;
}

// A file of separate debug information keeps the program headers, but not what they tell of.
bool is_left_out(const std::vector<elf::Section>& sections, std::uint64_t address) {
    return std::any_of(sections.begin(), sections.end(), [&](const elf::Section& section) {
        // Thread-local storage has addresses that others have too.
        return section.type == section_nobits &&
               (section.flags & (section_allocated | section_tls)) == section_allocated &&
               address - section.address < section.size;
    });
}

FileRange range_of(const elf::Section& section) { return {section.address, section.offset, section.size}; }

class Tables final : public ModuleTables {
public:
    Tables(ModuleId id, elf::ByteSource bytes, PageCache& pages, const elf::Header& header, Arch arch)
        : file_(id, std::move(bytes), pages), header_(header), arch_(arch) {
        file_.set_segments(header.segments);
        DwarfCursor field(file_.all(24, word_size()), header.big_endian);  // e_entry
        entry_ = field.fixed(word_size());
        if (arch == Arch::arm) entry_ &= ~std::uint64_t{1};
    }

    void find_tables(const std::vector<elf::Section>& sections) {
        find_code(sections);
        find_eh_frame(sections);
        if (const elf::Section* debug = find_section(sections, ".debug_frame")) {
            debug_range_ = range_of(*debug);
            debug_range_.address = 0;  // it is not loaded
            debug_compressed_ = (debug->flags & section_compressed) != 0;
        }
        if (arch_ == Arch::arm) find_exidx(sections);
    }

    [[nodiscard]] Arch arch() const override { return arch_; }
    [[nodiscard]] bool big_endian() const override { return header_.big_endian; }
    [[nodiscard]] std::uint64_t entry() const override { return entry_; }
    [[nodiscard]] std::uint64_t eh_frame_hdr() const override {
        if (!search_table_) return 0;
        const auto hdr = std::ranges::find(header_.segments, segment_eh_frame, &elf::Segment::type);
        return hdr == header_.segments.end() ? 0 : hdr->vaddr;
    }

    std::optional<FrameRow> row_at(std::uint64_t address) override {
        std::optional<FrameRow> row = eh_frame_row(address);
        if (!row) row = debug_frame_row(address);
        if (!row && exidx_.size != 0)
            row = exidx_row([this](std::uint64_t at) { return word_at(at); }, exidx_.address, exidx_.size, address);
        return row;
    }

    bool read(std::uint64_t address, std::span<std::byte> out) override {
        for (const ModuleFile::Load& load : file_.loads()) {
            if (load.writable || !load.range.contains(address)) continue;
            const std::uint64_t skipped = address - load.range.address;
            return out.size() <= load.range.size - skipped && file_.read(load.range.offset + skipped, out);
        }
        return false;
    }

    std::vector<CodeRange> some_functions(std::size_t count) override;

    [[nodiscard]] std::size_t memory_bytes() const override {
        std::size_t bytes = sizeof(*this) + eh_index_.memory_bytes() + debug_index_.memory_bytes();
        if (eh_frame_) bytes += sizeof(FrameSection) + eh_frame_->memory_bytes();
        if (debug_frame_) bytes += sizeof(FrameSection) + debug_frame_->memory_bytes();
        return bytes;
    }

private:
    [[nodiscard]] std::uint8_t word_size() const { return header_.is_64 ? 8 : 4; }
    [[nodiscard]] FrameFormat format(bool debug) const {
        return {.debug = debug, .address_size = word_size(), .big_endian = header_.big_endian, .bases = bases_};
    }

    void find_code(const std::vector<elf::Section>& sections);
    void find_eh_frame(const std::vector<elf::Section>& sections);
    void find_exidx(const std::vector<elf::Section>& sections);
    // Code that the linker discarded leaves entries behind whose start is 0, or what a linker writes instead.
    [[nodiscard]] bool is_code(std::uint64_t address) const {
        return code_.empty() || std::any_of(code_.begin(), code_.end(),
                                            [&](const AddressRange& range) { return range.contains(address); });
    }

    std::optional<FrameRow> eh_frame_row(std::uint64_t address);
    std::optional<FrameRow> search_table_row(std::uint64_t address, bool& broken);
    std::optional<FrameRow> debug_frame_row(std::uint64_t address);
    std::optional<FrameRow> row_by(const FrameIndex& index, FrameSection& section, std::uint64_t address);
    std::optional<FrameRow> run(const FrameSection::Description& description, std::uint64_t address) const {
        return run_call_frame(*description.common, description.function, address, arch_, header_.big_endian);
    }
    void open_debug_frame();
    std::optional<std::uint32_t> word_at(std::uint64_t address);
    std::optional<CodeRange> function_of(FrameSection& section, std::uint64_t offset);

    ModuleFile file_;
    elf::Header header_;
    Arch arch_;
    std::uint64_t entry_ = 0;
    PointerBases bases_;
    std::vector<AddressRange> code_;  // empty: not known

    std::optional<SearchTable> search_table_;  // when it can be searched
    bool table_checked_ = false;
    std::optional<FrameSection> eh_frame_;
    FrameIndex eh_index_;  // without a usable search table
    bool eh_indexed_ = false;

    FileRange debug_range_;
    bool debug_compressed_ = false, debug_opened_ = false;
    std::optional<FrameSection> debug_frame_;
    FrameIndex debug_index_;

    FileRange exidx_;
};

void Tables::find_code(const std::vector<elf::Section>& sections) {
    if (header_.type == type_relocatable) return;  // all its sections stand at 0
    const auto add = [&](std::uint64_t address, std::uint64_t size) {
        const std::uint64_t end = size > ~address ? ~std::uint64_t{0} : address + size;
        // Neighbours with the little padding that alignment needs between them are one.
        if (!code_.empty() && address >= code_.back().end && address - code_.back().end < 64)
            code_.back().end = end;
        else
            code_.push_back({address, end});
    };
    for (const elf::Section& section : sections)
        if ((section.flags & section_allocated) != 0 && (section.flags & section_executable) != 0 && section.size != 0)
            add(section.address, section.size);
    if (!code_.empty() && code_.size() <= max_code_ranges) return;
    code_.clear();
    for (const ModuleFile::Load& load : file_.loads())
        if (load.executable) add(load.range.address, load.range.size);
}

void Tables::find_eh_frame(const std::vector<elf::Section>& sections) {
    const elf::Section* text = find_section(sections, ".text");
    if (text != nullptr) bases_.text = text->address;
    const elf::Section* got = find_section(sections, ".got.plt");
    if (got == nullptr) got = find_section(sections, ".got");
    if (got != nullptr) bases_.data = got->address;

    const elf::Section* section = find_section(sections, ".eh_frame");
    for (const elf::Segment& segment : header_.segments) {
        if (segment.type != segment_eh_frame || is_left_out(sections, segment.vaddr)) continue;
        SearchTable table(file_, {segment.vaddr, segment.offset, segment.file_size}, word_size(), header_.big_endian);
        if (!table.frames()) continue;
        const bool known = section != nullptr && section->address == *table.frames();
        const auto frames = known ? range_of(*section) : file_.range_from(*table.frames());
        if (!frames) continue;
        FrameFormat frame_format = format(false);
        frame_format.ends_at_zero = !known;
        eh_frame_.emplace(file_, *frames, frame_format);
        if (table.size() != 0) search_table_.emplace(table);
        return;
    }
    if (section != nullptr) eh_frame_.emplace(file_, range_of(*section), format(false));
}

void Tables::find_exidx(const std::vector<elf::Section>& sections) {
    if (const elf::Section* section = find_section(sections, ".ARM.exidx")) exidx_ = range_of(*section);
    for (const elf::Segment& segment : header_.segments)
        if (segment.type == segment_exidx && !is_left_out(sections, segment.vaddr))
            exidx_ = {segment.vaddr, segment.offset, segment.file_size};
}

std::optional<FrameRow> Tables::row_by(const FrameIndex& index, FrameSection& section, std::uint64_t address) {
    const auto offset = index.find(address);
    const auto description = offset ? section.description_at(*offset) : std::nullopt;
    if (!description) return std::nullopt;
    return run(*description, address);
}

// `broken`: the table does not say what the entries say, or is not sorted.
std::optional<FrameRow> Tables::search_table_row(std::uint64_t address, bool& broken) {
    const auto found = search_table_->find(address);
    // Functions without a byte share their start with the one that follows them.
    constexpr std::uint64_t max_empty = 8;
    std::uint64_t start = 0;
    for (std::uint64_t back = 0; found && back < std::min(max_empty, *found + 1); ++back) {
        const auto entry = search_table_->entry_at(*found - back);
        if (!entry || (back != 0 && entry->start != start)) break;
        start = entry->start;
        const auto description = eh_frame_->description_at(entry->description - eh_frame_->address());
        if (!description) continue;
        broken = description->function.start != start;
        if (broken) return std::nullopt;
        if (address < description->function.end) return run(*description, address);
    }
    // Between two functions, or in one that a table out of order hides.
    broken = !std::exchange(table_checked_, true) && !search_table_->is_sorted();
    return std::nullopt;
}

std::optional<FrameRow> Tables::eh_frame_row(std::uint64_t address) {
    std::optional<FrameRow> row;
    if (!eh_frame_) return row;
    if (search_table_) {
        bool broken = false;
        row = search_table_row(address, broken);
        if (!broken) return row;
        search_table_.reset();
    }
    if (!eh_indexed_) {
        eh_indexed_ = true;
        eh_index_.build(*eh_frame_, [this](std::uint64_t start) { return is_code(start); });
    }
    row = row_by(eh_index_, *eh_frame_, address);
    return row;
}

std::optional<FrameRow> Tables::debug_frame_row(std::uint64_t address) {
    if (debug_range_.size == 0) return std::nullopt;
    if (!debug_opened_) open_debug_frame();
    if (!debug_frame_) return std::nullopt;
    return row_by(debug_index_, *debug_frame_, address);
}

void Tables::open_debug_frame() {
    debug_opened_ = true;
    if (debug_compressed_) {
        // Compression never doubles what it is given.
        if (debug_range_.size > 2 * max_decompressed) return;
        const std::string packed = file_.read_once(debug_range_.offset, static_cast<std::size_t>(debug_range_.size));
        auto plain = decompress_section(as_bytes_view(packed), header_.is_64, header_.big_endian, max_decompressed);
        if (!plain) return;
        debug_frame_.emplace(file_, std::move(*plain), format(true));
    } else {
        debug_frame_.emplace(file_, debug_range_, format(true));
    }
    const bool linked = header_.type != type_relocatable;
    debug_index_.build(*debug_frame_, [&](std::uint64_t start) { return !linked || (start != 0 && is_code(start)); });
}

std::optional<std::uint32_t> Tables::word_at(std::uint64_t address) {
    const auto range = file_.range_from(address);
    if (!range || range->size < 4) return std::nullopt;
    DwarfCursor in(file_.all(range->offset, 4), header_.big_endian);
    const std::uint64_t word = in.fixed(4);
    return in.ok() ? std::optional(static_cast<std::uint32_t>(word)) : std::nullopt;
}

std::optional<CodeRange> Tables::function_of(FrameSection& section, std::uint64_t offset) {
    const auto description = section.description_at(offset);
    if (!description) return std::nullopt;
    return CodeRange{description->function.start, description->function.end - description->function.start};
}

std::vector<CodeRange> Tables::some_functions(std::size_t count) {
    std::vector<CodeRange> functions;
    const auto spread = [&](std::uint64_t size, auto&& function_at) {
        const std::uint64_t wanted = std::min<std::uint64_t>(count, size);
        for (std::uint64_t i = 0; i < wanted; ++i)
            // The middle of each of `wanted` equal parts.
            if (const auto function = function_at((2 * i + 1) * size / (2 * wanted))) functions.push_back(*function);
    };
    if (eh_frame_ && !search_table_ && !eh_indexed_) (void)eh_frame_row(code_.empty() ? 0 : code_.front().start);
    if (search_table_)
        spread(search_table_->size(), [&](std::uint64_t position) -> std::optional<CodeRange> {
            const auto entry = search_table_->entry_at(position);
            return entry ? function_of(*eh_frame_, entry->description - eh_frame_->address()) : std::nullopt;
        });
    else if (eh_index_.size() != 0)
        spread(eh_index_.size(), [&](std::uint64_t position) {
            return function_of(*eh_frame_, eh_index_.offset_at(static_cast<std::size_t>(position)));
        });
    if (!functions.empty()) return functions;

    if (debug_range_.size != 0 && !debug_opened_) open_debug_frame();
    if (debug_frame_)
        spread(debug_index_.size(), [&](std::uint64_t position) {
            return function_of(*debug_frame_, debug_index_.offset_at(static_cast<std::size_t>(position)));
        });
    if (!functions.empty()) return functions;

    constexpr std::uint64_t index_entry = 8;
    // Where the last function ends, the index does not say.
    const std::uint64_t entries = exidx_.size / index_entry;
    spread(entries == 0 ? 0 : entries - 1, [&](std::uint64_t position) -> std::optional<CodeRange> {
        const auto start_of = [&](std::uint64_t number) -> std::optional<std::uint64_t> {
            const std::uint64_t at = exidx_.address + number * index_entry;
            const auto word = word_at(at);
            if (!word) return std::nullopt;
            const auto offset = static_cast<std::int32_t>(*word << 1) >> 1;  // 31 bits, relative to the word
            return truncate_address(at + static_cast<std::uint64_t>(std::int64_t{offset}), 4);
        };
        const auto start = start_of(position), end = start_of(position + 1);
        if (!start || !end || *end <= *start) return std::nullopt;
        return CodeRange{*start, *end - *start};
    });
    return functions;
}

}  // namespace

Result<std::unique_ptr<ModuleTables>> ModuleTables::open(ModuleId id, elf::ByteSource bytes, PageCache& pages) {
    const elf::Header header = TRY(elf::read_header(bytes));
    const auto arch = arch_of(header);
    if (!arch) return fail(ErrorCode::invalid, "an ELF file for another architecture");
    // Damaged section headers are as good as none.
    const std::vector<elf::Section> sections = elf::read_sections(bytes, header).value_or(std::vector<elf::Section>());
    auto tables = std::make_unique<Tables>(id, std::move(bytes), pages, header, *arch);
    tables->find_tables(sections);
    return tables;
}

}  // namespace flamewire::unwind
