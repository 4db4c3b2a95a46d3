#include "unwind/tables/module_tables.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/byte_reader.h"
#include "unwind/tables/call_frame.h"
#include "unwind/tables/compressed_section.h"
#include "unwind/tables/exidx.h"
#include "unwind/tables/frame_index.h"
#include "unwind/tables/frame_section.h"
#include "unwind/tables/go_table.h"
#include "unwind/tables/module_file.h"
#include "unwind/tables/search_table.h"
#include "unwind/tables/table_layout.h"

namespace flamewire::unwind {
namespace {

constexpr std::uint16_t type_relocatable = 1;

// A decompressed .debug_frame stays in memory as long as its module is open.
constexpr std::size_t max_decompressed = std::size_t{16} << 20;
// Applies to instructions that are read and to decompressed bytes.
constexpr std::uint64_t bytes_per_work = 8;

class Tables final : public ModuleTables {
public:
    Tables(ModuleId id, elf::ByteSource bytes, PageCache& pages, TableWork& work, const elf::Header& header, Arch arch)
        : file_(id, std::move(bytes), pages), work_(work), header_(header), arch_(arch) {
        file_.set_segments(header.segments);
        ByteReader field(file_.all(24, word_size()), byte_order(header.big_endian));  // e_entry
        entry_ = field.number(word_size());
        if (arch == Arch::arm) entry_ &= ~std::uint64_t{1};
        layout_ = table_layout(header, {});
        open_eh_frame();
    }

    [[nodiscard]] Arch arch() const override { return arch_; }
    [[nodiscard]] bool big_endian() const override { return header_.big_endian; }
    [[nodiscard]] std::uint64_t entry() const override { return entry_; }
    [[nodiscard]] std::uint64_t eh_frame_hdr() const override {
        return search_table_ ? layout_.search_table->address : 0;
    }

    std::optional<FrameRow> row_at(std::uint64_t address) override {
        std::optional<FrameRow> row = go_row(address);
        if (!row) row = eh_frame_row(address);
        if (!row && read_sections()) row = eh_frame_row(address);
        if (!row) row = debug_frame_row(address);
        if (!row && layout_.exidx)
            row = exidx_row([this](std::uint64_t at) { return word_at(at); }, layout_.exidx->address,
                            layout_.exidx->size, address);
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
    std::optional<CodeRange> function_at(std::uint64_t address) override;
    [[nodiscard]] bool switches_stacks() override { return go_table() != nullptr; }

    [[nodiscard]] std::size_t memory_bytes() const override {
        std::size_t bytes = sizeof(*this) + layout_.code.capacity() * sizeof(layout_.code[0]) +
                            eh_index_.memory_bytes() + debug_index_.memory_bytes();
        if (eh_frame_) bytes += sizeof(FrameSection) + eh_frame_->memory_bytes();
        if (debug_frame_) bytes += sizeof(FrameSection) + debug_frame_->memory_bytes();
        return bytes;
    }

private:
    [[nodiscard]] std::uint8_t word_size() const { return header_.is_64 ? 8 : 4; }
    [[nodiscard]] FrameFormat format(bool debug) const {
        return {.debug = debug, .address_size = word_size(), .big_endian = header_.big_endian, .bases = layout_.bases};
    }

    // Returns true on the first call, which updates `layout_` from the section headers. Most files never need it.
    bool read_sections();
    void open_eh_frame();

    GoTable* go_table();
    std::optional<FrameRow> go_row(std::uint64_t address) {
        GoTable* const table = go_table();
        return table != nullptr ? table->row_at(address) : std::nullopt;
    }
    std::optional<FrameRow> eh_frame_row(std::uint64_t address);
    std::optional<FrameRow> search_table_row(std::uint64_t address, bool& broken);
    void index_eh_frame();
    std::optional<FrameRow> debug_frame_row(std::uint64_t address);
    std::optional<FrameRow> row_by(const FrameIndex& index, FrameSection& section, std::uint64_t address);
    std::optional<FrameRow> run(const FrameSection::Description& description, std::uint64_t address) {
        work_.add(description.function.instructions.size() / bytes_per_work);
        return run_call_frame(*description.common, description.function, address, arch_, header_.big_endian, work_);
    }
    void open_debug_frame();
    std::optional<std::uint32_t> word_at(std::uint64_t address);
    std::optional<CodeRange> function_of(FrameSection& section, std::uint64_t offset);

    ModuleFile file_;
    TableWork& work_;
    elf::Header header_;
    Arch arch_;
    std::uint64_t entry_ = 0;
    TableLayout layout_;
    bool sections_read_ = false;

    std::optional<GoTable> go_table_;
    bool go_opened_ = false;

    std::optional<FrameSection> eh_frame_;
    std::optional<SearchTable> search_table_;  // only if it can be searched
    bool table_checked_ = false, table_broken_ = false;
    FrameIndex eh_index_;  // used without a usable search table
    bool eh_indexed_ = false;

    std::optional<FrameSection> debug_frame_;
    FrameIndex debug_index_;
    bool debug_opened_ = false;
};

bool Tables::read_sections() {
    if (std::exchange(sections_read_, true)) return false;
    // Damaged section headers count as none.
    const auto sections = elf::read_sections(file_.source(), header_);
    if (!sections || sections->empty()) return true;
    layout_ = table_layout(header_, *sections);
    open_eh_frame();
    return true;
}

void Tables::open_eh_frame() {
    search_table_.reset();
    eh_frame_.reset();
    if (layout_.search_table) {
        const SearchTable table(file_, *layout_.search_table, word_size(), header_.big_endian);
        const auto range = table.frames() ? file_.range_from(*table.frames()) : std::nullopt;
        const bool known = range && layout_.eh_frame && layout_.eh_frame->address == range->address;
        if (range) {
            FrameFormat frame_format = format(false);
            frame_format.ends_at_zero = !known;
            eh_frame_.emplace(file_, known ? *layout_.eh_frame : *range, frame_format);
            if (table.size() != 0 && !table_broken_) search_table_.emplace(table);
            return;
        }
    }
    if (layout_.eh_frame) eh_frame_.emplace(file_, *layout_.eh_frame, format(false));
}

GoTable* Tables::go_table() {
    if (!std::exchange(go_opened_, true)) go_table_ = GoTable::open(file_, header_);
    return go_table_ ? &*go_table_ : nullptr;
}

std::optional<FrameRow> Tables::row_by(const FrameIndex& index, FrameSection& section, std::uint64_t address) {
    const auto offset = index.find(address);
    const auto description = offset ? section.description_at(*offset) : std::nullopt;
    if (!description) return std::nullopt;
    return run(*description, address);
}

// `broken`: the table contradicts the entries, or is not sorted.
std::optional<FrameRow> Tables::search_table_row(std::uint64_t address, bool& broken) {
    const auto found = search_table_->find(address);
    // Empty functions share their start with the next one.
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
    // The address is between two functions, or an unsorted table hides its function.
    broken = !std::exchange(table_checked_, true) && !search_table_->is_sorted();
    return std::nullopt;
}

std::optional<FrameRow> Tables::eh_frame_row(std::uint64_t address) {
    std::optional<FrameRow> row;
    if (search_table_) {
        row = search_table_row(address, table_broken_);
        if (!table_broken_) return row;
        search_table_.reset();
    }
    index_eh_frame();
    if (!eh_frame_) return row;
    row = row_by(eh_index_, *eh_frame_, address);
    return row;
}

void Tables::index_eh_frame() {
    read_sections();
    if (!eh_frame_ || std::exchange(eh_indexed_, true)) return;
    eh_index_.build(*eh_frame_, [this](std::uint64_t start) { return layout_.is_code(start); }, work_);
}

std::optional<FrameRow> Tables::debug_frame_row(std::uint64_t address) {
    open_debug_frame();
    if (!debug_frame_) return std::nullopt;
    return row_by(debug_index_, *debug_frame_, address);
}

void Tables::open_debug_frame() {
    read_sections();
    const std::optional<FileRange>& range = layout_.debug_frame ? layout_.debug_frame : layout_.mini_debug;
    if (!range || std::exchange(debug_opened_, true)) return;
    if (layout_.debug_frame && !layout_.debug_compressed) {
        debug_frame_.emplace(file_, *range, format(true));
    } else {
        // Compressed data is never twice as large as its contents.
        if (range->size > 2 * max_decompressed) return;
        const std::string packed = file_.read_once(range->offset, static_cast<std::size_t>(range->size));
        auto plain = layout_.debug_frame ? decompress_section(as_bytes_view(packed), header_.is_64, header_.big_endian,
                                                              max_decompressed)
                                         : mini_debug_frame(as_bytes_view(packed), max_decompressed);
        work_.add((plain ? plain->size() : max_decompressed) / bytes_per_work);
        if (!plain) return;
        debug_frame_.emplace(*std::move(plain), 0, format(true));
    }
    const bool linked = header_.type != type_relocatable;
    debug_index_.build(
        *debug_frame_, [&](std::uint64_t start) { return !linked || (start != 0 && layout_.is_code(start)); }, work_);
}

std::optional<std::uint32_t> Tables::word_at(std::uint64_t address) {
    const auto range = file_.range_from(address);
    if (!range || range->size < 4) return std::nullopt;
    ByteReader in(file_.all(range->offset, 4), byte_order(header_.big_endian));
    const std::uint64_t word = in.number(4);
    return in.ok() ? std::optional(static_cast<std::uint32_t>(word)) : std::nullopt;
}

std::optional<CodeRange> Tables::function_of(FrameSection& section, std::uint64_t offset) {
    const auto description = section.description_at(offset);
    if (!description) return std::nullopt;
    return CodeRange{description->function.start, description->function.end - description->function.start};
}

std::optional<CodeRange> Tables::function_at(std::uint64_t address) {
    const auto position = search_table_ ? search_table_->find(address) : std::nullopt;
    const auto entry = position ? search_table_->entry_at(*position) : std::nullopt;
    auto found = entry ? function_of(*eh_frame_, entry->description - eh_frame_->address()) : std::nullopt;
    if (found && address - found->start >= found->size) found.reset();
    return found;
}

std::vector<CodeRange> Tables::some_functions(std::size_t count) {
    std::vector<CodeRange> functions;
    const auto spread = [&](std::uint64_t size, auto&& function_at) {
        const std::uint64_t wanted = std::min<std::uint64_t>(count, size);
        for (std::uint64_t i = 0; i < wanted; ++i)
            // The middle of each of `wanted` equal parts.
            if (const auto function = function_at((2 * i + 1) * size / (2 * wanted))) functions.push_back(*function);
    };
    // In a Go program with C code, most code is Go's.
    if (GoTable* const table = go_table())
        spread(table->size(),
               [&](std::uint64_t position) { return table->function(static_cast<std::size_t>(position)); });
    if (!functions.empty()) return functions;

    if (!search_table_) index_eh_frame();
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

    open_debug_frame();
    if (debug_frame_)
        spread(debug_index_.size(), [&](std::uint64_t position) {
            return function_of(*debug_frame_, debug_index_.offset_at(static_cast<std::size_t>(position)));
        });
    if (!functions.empty()) return functions;

    constexpr std::uint64_t index_entry = 8;
    // The index does not contain the end of the last function.
    const std::uint64_t entries = (layout_.exidx ? layout_.exidx->size : 0) / index_entry;
    spread(entries == 0 ? 0 : entries - 1, [&](std::uint64_t position) -> std::optional<CodeRange> {
        const auto start_of = [&](std::uint64_t number) -> std::optional<std::uint64_t> {
            const std::uint64_t at = layout_.exidx->address + number * index_entry;
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

Result<std::unique_ptr<ModuleTables>> ModuleTables::open(ModuleId id, elf::ByteSource bytes, PageCache& pages,
                                                         TableWork& work) {
    const elf::Header header = TRY(elf::read_header(bytes));
    const auto arch = arch_of_machine(header.machine);
    if (!arch) return fail(ErrorCode::invalid, "an ELF file for another architecture");
    return std::make_unique<Tables>(id, std::move(bytes), pages, work, header, *arch);
}

}  // namespace flamewire::unwind
