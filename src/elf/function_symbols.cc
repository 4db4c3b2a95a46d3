#include "elf/function_symbols.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "elf/xz.h"

namespace flamewire::elf {
namespace {

constexpr std::uint32_t section_symbols = 2, section_dynamic_symbols = 11;  // SHT_SYMTAB, SHT_DYNSYM
constexpr std::uint16_t index_undefined = 0, index_absolute = 0xfff1;       // SHN_UNDEF, SHN_ABS
constexpr unsigned type_object = 1, type_function = 2, type_ifunc = 10;     // STT_OBJECT, STT_FUNC, STT_GNU_IFUNC
constexpr std::uint16_t machine_arm = 40;                                   // EM_ARM

constexpr std::uint64_t block_symbols = 16384;  // 384 KiB of a 64-bit table
// Linkers let a name share the end of another, so the names of a block can be scattered over the whole string table.
// Small windows keep that cheap; a name that is longer gets one of its own.
constexpr std::uint64_t window_bytes = 8u << 10, max_name_bytes = 64u << 10;
// These bound the time for a hostile file. A program of 500 MB has a tenth of that.
constexpr std::uint64_t max_symbols = 1u << 24;
constexpr std::size_t max_tables = 4;  // files have a .symtab and a .dynsym
constexpr std::uint64_t max_name_bytes_read = std::uint64_t{2} << 30;
constexpr std::uint64_t max_packed_bytes = 8u << 20, max_unpacked_bytes = 16u << 20;

struct Symbol {
    std::uint64_t address = 0, size = 0;
    std::uint32_t name = 0;  // offset in the string table
    bool defined = false;    // and of a kind
    SymbolKind kind = SymbolKind::function;
    bool thumb = false, ifunc = false;
};

using Filter = std::function<bool(const Symbol&)>;
using Sink = std::function<bool(const Symbol&, std::string_view name)>;  // false: stop

Symbol parse_symbol(ByteReader& in, const Header& header) {
    Symbol symbol;
    std::uint8_t info = 0;
    std::uint16_t section = 0;
    symbol.name = in.u32();
    if (header.is_64) {
        info = in.u8();
        in.u8();  // st_other
        section = in.u16();
        symbol.address = in.u64();
        symbol.size = in.u64();
    } else {
        symbol.address = in.u32();
        symbol.size = in.u32();
        info = in.u8();
        in.u8();
        section = in.u16();
    }
    const unsigned type = info & 0xfu;
    const bool function = type == type_function || type == type_ifunc;
    symbol.defined = (function || type == type_object) && section != index_undefined && section != index_absolute;
    symbol.kind = function ? SymbolKind::function : SymbolKind::object;
    symbol.ifunc = type == type_ifunc;
    symbol.thumb = function && header.machine == machine_arm && (symbol.address & 1) != 0;
    if (symbol.thumb) --symbol.address;
    return symbol;
}

std::unexpected<Error> too_large() { return fail(ErrorCode::too_large, "the ELF symbol tables are too large"); }

// Reads names from a string table through a window that moves over it.
class NameReader {
public:
    NameReader(const ByteSource& source, const Section& table) : source_(source), table_(table) {}

    // Without the symbol version that linkers append ("memcpy@@GLIBC_2.14"). Empty for an offset outside the table or a
    // name that is too long. The view is valid until the next call.
    Result<std::string_view> name_at(std::uint64_t offset) {
        if (offset >= table_.size) return std::string_view();
        std::string_view text = in_window(offset);
        std::size_t end = text.find('\0');
        for (const std::uint64_t size : {window_bytes, max_name_bytes}) {
            if (end != std::string_view::npos) break;
            TRY(move_window(offset, std::min(size, table_.size - offset)));
            text = in_window(offset);
            end = text.find('\0');
        }
        if (end == std::string_view::npos) return std::string_view();
        // Symbols may share long names.
        read_ += end;
        if (read_ > max_name_bytes_read) return too_large();
        text = text.substr(0, end);
        const std::size_t version = text.find('@', 1);
        return version == std::string_view::npos ? text : text.substr(0, version);
    }

private:
    [[nodiscard]] std::string_view in_window(std::uint64_t offset) const {
        if (offset < start_ || offset - start_ >= window_.size()) return {};
        return std::string_view(window_).substr(static_cast<std::size_t>(offset - start_));
    }
    Result<bool> move_window(std::uint64_t offset, std::uint64_t size) {
        read_ += size;
        if (read_ > max_name_bytes_read) return too_large();
        window_ = TRY(source_(table_.offset + offset, static_cast<std::size_t>(size)));
        start_ = offset;
        return true;
    }

    const ByteSource& source_;
    const Section& table_;
    std::string window_;
    std::uint64_t start_ = 0;  // offset of the window in the table
    std::uint64_t read_ = 0;   // bytes that were read or searched
};

// Passes symbols to `sink` in the order of their names within each block of symbols.
Result<bool> visit_table(const ByteSource& source, const Header& header, const Section& table, const Section& strings,
                         const Filter& filter, const Sink& sink) {
    const std::uint64_t entry_bytes = header.is_64 ? 24 : 16;
    const std::uint64_t count = table.size / entry_bytes;
    if (count > max_symbols || strings.offset + strings.size < strings.size) return too_large();
    NameReader names(source, strings);
    std::vector<Symbol> block;
    std::vector<std::uint64_t> order;  // name's offset, then index in the block
    for (std::uint64_t first = 0; first < count; first += block_symbols) {
        const std::uint64_t bytes = std::min(block_symbols, count - first) * entry_bytes;
        const std::string raw = TRY(read_exactly(source, table.offset + first * entry_bytes, bytes, "symbols"));
        ByteReader in(as_bytes_view(raw), byte_order(header.big_endian));
        block.clear();
        order.clear();
        while (!in.at_end()) {
            const Symbol symbol = parse_symbol(in, header);
            if (!symbol.defined || !filter(symbol)) continue;
            order.push_back(std::uint64_t{symbol.name} << 32 | block.size());
            block.push_back(symbol);
        }
        std::sort(order.begin(), order.end());
        for (const std::uint64_t entry : order) {
            const Symbol& symbol = block[static_cast<std::uint32_t>(entry)];
            const std::string_view name = TRY(names.name_at(symbol.name));
            if (!name.empty() && !sink(symbol, name)) return false;
        }
    }
    return true;
}

// Sets `complete` if there is a .symtab.
Result<bool> visit_tables(const ByteSource& source, const Header& header, const std::vector<Section>& sections,
                          const Filter& filter, const Sink& sink, bool& complete) {
    std::size_t tables = 0;
    for (const Section& table : sections) {
        if (table.type != section_symbols && table.type != section_dynamic_symbols) continue;
        if (++tables > max_tables) return too_large();
        if (table.link >= sections.size() || sections[table.link].type == section_nobits) continue;
        if (!TRY(visit_table(source, header, table, sections[table.link], filter, sink))) return false;
        complete = complete || table.type == section_symbols;
    }
    return true;
}

// The ELF file in .gnu_debugdata; empty if there is none that can be unpacked.
std::string unpack_mini_debug(const ByteSource& source, const std::vector<Section>& sections) {
    const auto mini = std::ranges::find(sections, ".gnu_debugdata", &Section::name);
    if (mini == sections.end() || mini->type == section_nobits || mini->size > max_packed_bytes) return {};
    const auto packed = read_exactly(source, mini->offset, mini->size, "compressed symbols");
    if (!packed) return {};
    return decompress_xz(as_bytes_view(*packed), max_unpacked_bytes).value_or(std::string());
}

Result<bool> visit_symbols(const ByteSource& source, const Header& header, const std::vector<Section>& sections,
                           const Filter& filter, const Sink& sink) {
    bool complete = false;
    if (!TRY(visit_tables(source, header, sections, filter, sink, complete)) || complete) return true;
    const std::string mini = unpack_mini_debug(source, sections);
    const ByteSource mini_source = source_of_bytes(as_bytes_view(mini));
    const auto mini_header = read_header(mini_source);
    if (!mini_header) return true;
    const auto mini_sections = read_sections(mini_source, *mini_header);
    if (mini_sections) (void)visit_tables(mini_source, *mini_header, *mini_sections, filter, sink, complete);
    return true;
}

FunctionSymbol function_of(const Symbol& symbol, std::string_view name) {
    return {std::string(name), symbol.address, symbol.size, symbol.thumb, symbol.ifunc};
}

// Sorts, and removes duplicates: .symtab repeats .dynsym, and a name can have several versions at one address.
void unite(std::vector<FunctionSymbol>& functions) {
    // Of duplicates, the one with the largest size remains.
    const auto less = [](const FunctionSymbol& a, const FunctionSymbol& b) {
        if (a.address != b.address) return a.address < b.address;
        const int names = a.name.compare(b.name);
        return names != 0 ? names < 0 : a.size > b.size;
    };
    // std::sort is faster, and would add 1 KB to the agent.
    std::make_heap(functions.begin(), functions.end(), less);
    std::sort_heap(functions.begin(), functions.end(), less);
    const auto rest = std::unique(functions.begin(), functions.end(), [](const auto& a, const auto& b) {
        return a.address == b.address && a.name == b.name;
    });
    functions.erase(rest, functions.end());
}

}  // namespace

Result<std::vector<FunctionSymbol>> find_functions(const ByteSource& source, const Header& header,
                                                   const std::vector<Section>& sections,
                                                   const std::function<bool(std::string_view name)>& wanted,
                                                   std::size_t limit, SymbolKind kind) {
    std::vector<FunctionSymbol> functions;
    const auto add = [&](const Symbol& symbol, std::string_view name) {
        if (!wanted(name)) return true;
        functions.push_back(function_of(symbol, name));
        // Duplicates do not count. Removing them at each addition would be quadratic.
        if (functions.size() / 2 > limit) unite(functions);
        return functions.size() / 2 <= limit;
    };
    TRY(visit_symbols(source, header, sections, [&](const Symbol& symbol) { return symbol.kind == kind; }, add));
    unite(functions);
    if (functions.size() > limit)
        return fail(ErrorCode::too_large, "more than " + std::to_string(limit) +
                                              (kind == SymbolKind::function ? " functions match" : " variables match"));
    return functions;
}

Result<std::optional<FunctionSymbol>> function_at(const ByteSource& source, const Header& header,
                                                  const std::vector<Section>& sections, std::uint64_t address) {
    std::optional<FunctionSymbol> best;
    const auto covers = [&](const Symbol& symbol) {
        return symbol.kind == SymbolKind::function && symbol.address <= address &&
               address - symbol.address < std::max<std::uint64_t>(symbol.size, 1);
    };
    const auto choose = [&](const Symbol& symbol, std::string_view name) {
        const bool better = !best || (symbol.address != best->address ? symbol.address > best->address
                                      : symbol.size != best->size     ? symbol.size > best->size
                                                                      : name < best->name);
        if (better) best = function_of(symbol, name);
        return true;
    };
    TRY(visit_symbols(source, header, sections, covers, choose));
    return best;
}

}  // namespace flamewire::elf
