#include "symbol/files/linker_map.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

namespace flamewire::symbol {
namespace {

constexpr std::string_view heading = "Linker script and memory map";
constexpr std::size_t max_symbols = std::size_t{1} << 22;

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> starts) {
    return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) { return text.starts_with(start); });
}

std::string_view next_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(word.size());
    return word;
}

bool parse_hex(std::string_view word, std::uint64_t& value) {
    if (!word.starts_with("0x")) return false;
    const char* const end = word.data() + word.size();
    const auto [after, error] = std::from_chars(word.data() + 2, end, value, 16);
    return error == std::errc() && after == end;
}

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    const std::size_t last = text.find_last_not_of(" \t\r");
    return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// ".text.unlikely.name" -> "name"; empty if the piece does not belong to one function.
std::string_view function_of_section(std::string_view section) {
    if (!section.starts_with(".text.")) return {};
    std::string_view name = section.substr(6);
    for (const std::string_view group : {"unlikely", "startup", "exit", "hot", "sorted"}) {
        if (name == group) return {};
        if (name.starts_with(group) && name[group.size()] == '.') {
            name.remove_prefix(group.size() + 1);
            break;
        }
    }
    return name;
}

// Without directories: "/usr/lib/libc.a(printf.o)" -> "libc.a(printf.o)".
std::string_view base_name(std::string_view object) {
    const std::size_t member = std::min(object.find('('), object.size());
    const std::size_t slash = object.substr(0, member).rfind('/');
    return slash == std::string_view::npos ? object : object.substr(slash + 1);
}

class Parser {
public:
    void take(std::string_view line) {
        if (line.empty()) return;
        if (line.starts_with("OUTPUT(")) return take_output(line.substr(7));
        if (line[0] != ' ') return take_output_section(line);
        if (line.size() > 1 && line[1] != ' ') return take_piece(line.substr(1));
        take_continuation(line);
    }
    LinkerMap finish() {
        close_piece();
        return std::move(map_);
    }

private:
    // OUTPUT(build/app elf32-littlearm)
    void take_output(std::string_view rest) {
        rest = trimmed(rest);
        if (!rest.ends_with(')')) return;
        rest.remove_suffix(1);
        const std::size_t space = rest.rfind(' ');
        if (space == std::string_view::npos) return;
        map_.output = rest.substr(0, space);
        map_.arm = starts_with_any(rest.substr(space + 1), {"elf32-littlearm", "elf32-bigarm"});
    }

    void take_output_section(std::string_view line) {
        close_piece();
        pending_ = false;
        if (line[0] != '.' && line.find("0x") == std::string_view::npos) return;
        const std::string_view name = next_word(line);
        skipped_ = starts_with_any(
            name, {".debug", ".zdebug", ".comment", ".note", ".gnu.attributes", ".ARM.attr", ".stab", "LOAD"});
        stubs_ = starts_with_any(name, {".plt", ".iplt"});
        text_ = starts_with_any(name, {".text", ".init", ".fini", ".plt", ".iplt"}) && !name.ends_with("_array");
    }

    // ".text.name  0xADDRESS  0xSIZE object", or the name alone with the rest on the next line.
    void take_piece(std::string_view line) {
        close_piece();
        pending_ = false;
        if (line[0] == '*') return;  // a pattern of the linker script, or *fill*
        section_ = next_word(line);
        if (trimmed(line).empty())
            pending_ = true;
        else
            open_piece(line);
    }

    void open_piece(std::string_view rest) {
        std::uint64_t address = 0, size = 0;
        if (!parse_hex(next_word(rest), address) || !parse_hex(next_word(rest), size)) return;
        if (skipped_ || size == 0 || size > std::numeric_limits<std::uint64_t>::max() - address) return;
        start_ = address;
        end_ = address + size;
        object_ = trimmed(rest);
        first_ = map_.symbols.size();
        open_ = true;
    }

    // The rest of a piece, or "0xADDRESS  symbol", or an assignment of the linker script.
    void take_continuation(std::string_view line) {
        if (pending_) {
            pending_ = false;
            return open_piece(line);
        }
        std::uint64_t address = 0;
        if (!open_ || !parse_hex(next_word(line), address) || address < start_ || address >= end_) return;
        const std::string_view name = trimmed(line);
        if (name.empty() || name.starts_with("PROVIDE") || name.starts_with("0x") || name.find(" = ") != name.npos)
            return;
        add(address, name);
    }

    void add(std::uint64_t address, std::string_view name) {
        if (map_.symbols.size() < max_symbols) map_.symbols.push_back({address, 0, std::string(name), text_});
    }

    // The sizes of symbols are known when the piece is complete.
    void close_piece() {
        if (!open_) return;
        open_ = false;
        const auto begin = map_.symbols.begin() + static_cast<std::ptrdiff_t>(first_);
        const bool at_start =
            std::any_of(begin, map_.symbols.end(), [&](const MapSymbol& s) { return s.address == start_; });
        if (!at_start) {
            const std::string_view name = function_of_section(section_);
            const std::string_view object = base_name(object_);
            if (!name.empty())
                add(start_, name);
            else if (!object.empty() && !stubs_)
                add(start_, "[" + std::string(object) + "]");
        }
        const auto from = map_.symbols.begin() + static_cast<std::ptrdiff_t>(first_);
        std::sort(from, map_.symbols.end(), [](const MapSymbol& a, const MapSymbol& b) {
            return std::tie(a.address, a.name) < std::tie(b.address, b.name);
        });
        std::uint64_t next = end_;
        for (auto at = map_.symbols.end(); at != from;) {
            --at;
            // Names with the same address have the same size.
            const auto after = at + 1;
            if (after != map_.symbols.end() && after->address != at->address) next = after->address;
            at->size = next - at->address;
        }
    }

    LinkerMap map_;
    bool pending_ = false;                                // a piece whose addresses are on the next line
    bool skipped_ = true, text_ = false, stubs_ = false;  // of the output section
    bool open_ = false;
    std::string_view section_, object_;  // of the piece
    std::uint64_t start_ = 0, end_ = 0;
    std::size_t first_ = 0;  // its first symbol
};

std::string_view next_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

}  // namespace

Result<LinkerMap> parse_linker_map(std::string_view text) {
    while (!text.empty() && next_line(text) != heading) {
    }
    if (text.empty()) return fail(ErrorCode::invalid, "not a linker map of GNU ld (-Wl,-Map=FILE with LC_ALL=C)");
    Parser parser;
    while (!text.empty()) parser.take(next_line(text));
    return parser.finish();
}

}  // namespace flamewire::symbol
