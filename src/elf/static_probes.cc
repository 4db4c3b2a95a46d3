#include "elf/static_probes.h"

#include <algorithm>

#include "base/byte_reader.h"

namespace flamewire::elf {
namespace {

constexpr std::uint32_t section_note = 7;            // SHT_NOTE
constexpr std::uint32_t note_stapsdt = 3;            // NT_STAPSDT
constexpr std::uint64_t max_probe_bytes = 8u << 20;  // HotSpot, which has many, needs 100 KB

// EM_386, EM_S390, EM_ARM, EM_X86_64, EM_AARCH64
constexpr std::uint16_t machine_386 = 3, machine_s390 = 22, machine_arm = 40, machine_x86_64 = 62,
                        machine_aarch64 = 183;

std::uint64_t padding(std::uint32_t size) { return -size & 3u; }

// The contents of one note. `base` is the address of .stapsdt.base now; 0 if the file has none.
void add_probe(Bytes content, const Header& header, std::uint64_t base, std::vector<StaticProbe>& probes) {
    ByteReader in(content, byte_order(header.big_endian));
    const std::size_t word = header.is_64 ? 8 : 4;
    StaticProbe probe;
    probe.location = in.number(word);
    // prelink moves sections, but does not change notes: they have the base's address from before.
    const std::uint64_t moved = base - in.number(word);
    probe.semaphore = in.number(word);
    probe.provider = in.c_string();
    probe.name = in.c_string();
    probe.arguments = in.text();
    if (!in.ok() || probe.name.empty()) return;
    if (base != 0) {
        probe.location += moved;
        if (probe.semaphore != 0) probe.semaphore += moved;
    }
    probes.push_back(std::move(probe));
}

void add_probes(Bytes notes, const Header& header, std::uint64_t base, std::vector<StaticProbe>& probes) {
    ByteReader in(notes, byte_order(header.big_endian));
    while (in.remaining() >= 12) {
        const std::uint32_t name_size = in.u32(), content_size = in.u32(), type = in.u32();
        const Bytes name = in.bytes(name_size);
        in.skip(padding(name_size));
        const Bytes content = in.bytes(content_size);
        if (!in.ok()) break;
        if (type == note_stapsdt && as_text(name) == std::string_view("stapsdt\0", 8))
            add_probe(content, header, base, probes);
        in.skip(padding(content_size));  // which the last one may lack
    }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_number(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return !text.empty() && text.size() <= 20 && std::ranges::all_of(text, is_digit);
}

// The number of a register such as "r12", if `letter` is its letter; otherwise 99.
unsigned register_number(std::string_view name, char letter) {
    if (name.size() < 2 || name.size() > 3 || name[0] != letter || !std::ranges::all_of(name.substr(1), is_digit))
        return 99;
    if (name.size() == 2) return static_cast<unsigned>(name[1] - '0');
    return name[1] == '0' ? 99 : static_cast<unsigned>((name[1] - '0') * 10 + (name[2] - '0'));
}

// These append the kernel's name for a register. They return false if it has none.
bool add_x86_register(std::string_view name, bool is_64, std::string& out) {
    // Parts of a register become the whole one, because the type has the size.
    std::string_view whole = name;
    if (whole.size() > 2 && std::string_view("dwb").find(whole.back()) != std::string_view::npos)
        whole.remove_suffix(1);
    const unsigned number = register_number(whole, 'r');
    if (is_64 && number >= 8 && number <= 15) {
        out += whole;
        return true;
    }
    if (name.size() == 3 && (name[0] == 'e' || name[0] == 'r')) name.remove_prefix(1);
    if (name.size() == 3 && name[2] == 'l') name.remove_suffix(1);  // sil, dil, bpl, spl
    if (name.size() != 2) return false;
    constexpr std::string_view names = "axbxcxdxsidibpspip";
    for (std::size_t i = 0; i < names.size(); i += 2) {
        if (names[i] != name[0] || (names[i + 1] != name[1] && (names[i + 1] != 'x' || name[1] != 'l'))) continue;
        out += names.substr(i, 2);
        return true;
    }
    return false;
}

bool add_arm_register(std::string_view name, std::string& out) {
    constexpr std::string_view others[][2] = {{"r11", "fp"}, {"r12", "ip"}, {"r13", "sp"},
                                              {"r14", "lr"}, {"sl", "r10"}, {"sb", "r9"}};
    for (const auto& [other, kernel] : others)
        if (name == other) name = kernel;
    out += name;
    return register_number(name, 'r') <= 10 || name == "fp" || name == "ip" || name == "sp" || name == "lr";
}

bool add_register(std::uint16_t machine, std::string_view name, std::string& out) {
    switch (machine) {
        case machine_386:
        case machine_x86_64: return add_x86_register(name, machine == machine_x86_64, out);
        case machine_arm: return add_arm_register(name, out);
        case machine_s390: out += name; return register_number(name, 'r') <= 15;
        default: break;
    }
    if (name == "fp") name = "x29";
    out += name;
    if (register_number(name, 'w') <= 30) out[out.size() - name.size()] = 'x';
    return register_number(name, 'x') <= 30 || register_number(name, 'w') <= 30 || name == "sp" || name == "lr";
}

bool add_number(std::string_view text, std::string& out) {
    out += text;
    return is_number(text);
}

bool add_memory(std::uint16_t machine, std::string_view offset, std::string_view base, std::string& out) {
    if (!offset.starts_with('-') && !offset.starts_with('+')) out += '+';
    if (!add_number(offset.empty() ? "0" : offset, out)) return false;
    out += "(%";
    if (!add_register(machine, base, out)) return false;
    out += ')';
    return true;
}

// "%rax", "-8(%rbp)", "$5"; constants of s390 have no `$`.
bool add_att_operand(std::uint16_t machine, std::string_view text, std::string& out) {
    const std::size_t open = text.find("(%");
    if (open != std::string_view::npos && text.ends_with(')'))
        return add_memory(machine, text.substr(0, open), text.substr(open + 2, text.size() - open - 3), out);
    const bool is_register = text.starts_with('%');
    out += is_register ? '%' : '\\';
    if (is_register || machine != machine_s390) {
        if (!is_register && !text.starts_with('$')) return false;
        text.remove_prefix(1);
    }
    return is_register ? add_register(machine, text, out) : add_number(text, out);
}

// "x0", "[sp, 8]", "[fp, #-8]", "5", "#5"
bool add_arm_operand(std::uint16_t machine, std::string_view text, std::string& out) {
    if (text.starts_with('[')) {
        if (!text.ends_with(']')) return false;
        text = text.substr(1, text.size() - 2);
        const std::size_t comma = std::min(text.find(','), text.size());
        std::string_view offset = text.substr(comma);
        offset.remove_prefix(std::min(offset.find_first_not_of(", #"), offset.size()));
        return add_memory(machine, offset, text.substr(0, comma), out);
    }
    if (text.starts_with('#')) text.remove_prefix(1);
    out += is_number(text) ? '\\' : '%';
    return is_number(text) ? add_number(text, out) : add_register(machine, text, out);
}

// "-4@%eax": the size in bytes, negative for a signed number. Without it, the argument is a word.
std::string fetch_argument(std::uint16_t machine, bool is_64, std::string_view argument) {
    const std::size_t at = argument.find('@');
    std::string_view size = is_64 ? "8" : "4";
    if (at != std::string_view::npos) {
        size = argument.substr(0, at);
        argument.remove_prefix(at + 1);
    }
    const bool is_signed = size.starts_with('-');
    if (is_signed) size.remove_prefix(1);
    constexpr std::string_view sizes = "1248";
    const std::size_t which = size.size() == 1 ? sizes.find(size) : std::string_view::npos;
    if (which == std::string_view::npos) return {};
    std::string out;
    const bool is_arm = machine == machine_aarch64 || machine == machine_arm;
    const bool known = is_arm ? add_arm_operand(machine, argument, out) : add_att_operand(machine, argument, out);
    // A 64-bit number in a 32-bit register has its other half elsewhere.
    if (!known || (!is_64 && size == "8" && out[0] == '%')) return {};
    constexpr const char* types[] = {"8", "16", "32", "64"};
    out += is_signed ? ":s" : ":u";
    out += types[which];
    return out;
}

}  // namespace

Result<std::vector<StaticProbe>> read_static_probes(const ByteSource& source, const Header& header,
                                                    const std::vector<Section>& sections) {
    std::vector<StaticProbe> probes;
    const auto base = std::ranges::find(sections, ".stapsdt.base", &Section::name);
    const std::uint64_t base_address = base == sections.end() ? 0 : base->address;
    std::uint64_t note_bytes = 0;
    for (const Section& section : sections) {
        if (section.type != section_note || section.name != ".note.stapsdt") continue;
        if (section.size > max_probe_bytes - note_bytes)
            return fail(ErrorCode::too_large, "the notes of static probes are too large");
        note_bytes += section.size;
        const std::string notes = TRY(read_exactly(source, section.offset, section.size, "notes of static probes"));
        add_probes(as_bytes_view(notes), header, base_address, probes);
    }
    return probes;
}

std::vector<std::string> fetch_arguments(std::uint16_t machine, bool is_64, std::string_view arguments) {
    std::vector<std::string> fetched;
    const auto machines = {machine_386, machine_s390, machine_arm, machine_x86_64, machine_aarch64};
    const bool known = std::ranges::find(machines, machine) != machines.end();
    while (!arguments.empty()) {
        // Operands of Arm have spaces in brackets: "4@[sp, 12] 8@x0".
        std::size_t end = 0;
        for (bool bracket = false; end < arguments.size() && (bracket || arguments[end] != ' '); ++end) {
            if (arguments[end] == '[') bracket = true;
            if (arguments[end] == ']') bracket = false;
        }
        if (end != 0)
            fetched.push_back(known ? fetch_argument(machine, is_64, arguments.substr(0, end)) : std::string());
        arguments.remove_prefix(std::min(end + 1, arguments.size()));
    }
    return fetched;
}

}  // namespace flamewire::elf
