#include "agent/process/vdso.h"

#include <elf.h>
#include <sys/auxv.h>

#include "agent/process/maps.h"
#include "agent/process/proc_text.h"
#include "base/byte_reader.h"
#include "base/file.h"
#include "elf/elf_file.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t max_image_bytes = 64 * 1024;
constexpr std::uint32_t section_dynamic_symbols = 11;  // SHT_DYNSYM
constexpr unsigned symbol_function = 2;                // STT_FUNC, low four bits of st_info

struct RawSymbol {
    std::uint32_t name = 0;
    unsigned type = 0;
    std::uint16_t section = 0;
    std::uint64_t value = 0, size = 0;
};

// Elf64_Sym and Elf32_Sym contain the same fields in different order.
RawSymbol read_symbol(ByteReader& in, bool is_64) {
    RawSymbol symbol;
    symbol.name = in.u32();
    if (!is_64) {
        symbol.value = in.u32();
        symbol.size = in.u32();
    }
    symbol.type = in.u8() & 0xf;
    in.skip(1);
    symbol.section = in.u16();
    if (is_64) {
        symbol.value = in.u64();
        symbol.size = in.u64();
    }
    return symbol;
}

Bytes section_bytes(Bytes image, const elf::Section& section) {
    if (section.offset > image.size() || section.size > image.size() - section.offset) return {};
    return image.subspan(static_cast<std::size_t>(section.offset), static_cast<std::size_t>(section.size));
}

}  // namespace

Result<std::vector<VdsoSymbol>> vdso_functions(Bytes image) {
    const elf::ByteSource source = elf::source_of_bytes(image);
    const elf::Header header = TRY(elf::read_header(source));
    const std::vector<elf::Section> sections = TRY(elf::read_sections(source, header));
    const auto symbols_at = std::find_if(sections.begin(), sections.end(), [](const elf::Section& section) {
        return section.type == section_dynamic_symbols;
    });
    const auto names_at = std::find_if(sections.begin(), sections.end(),
                                       [](const elf::Section& section) { return section.name == ".dynstr"; });
    std::vector<VdsoSymbol> functions;
    if (symbols_at == sections.end() || names_at == sections.end()) return functions;
    const Bytes names = section_bytes(image, *names_at);
    ByteReader in(section_bytes(image, *symbols_at));
    const std::size_t entry_bytes = header.is_64 ? 24 : 16;
    while (in.remaining() >= entry_bytes) {
        RawSymbol symbol = read_symbol(in, header.is_64);
        if (symbol.type != symbol_function || symbol.section == 0 || symbol.name >= names.size()) continue;
        if (header.machine == EM_ARM) symbol.value &= ~std::uint64_t{1};  // marks Thumb code
        const std::string_view name = ByteReader(names.subspan(symbol.name)).c_string();
        // gettimeofday and __vdso_gettimeofday have the same address: the longer name is more specific.
        VdsoSymbol* same = nullptr;
        for (VdsoSymbol& known : functions)
            if (known.address == symbol.value) same = &known;
        if (same == nullptr)
            functions.push_back({symbol.value, symbol.size, std::string(name)});
        else if (name.size() > same->name.size())
            same->name = name;
    }
    return functions;
}

Result<std::string> own_vdso_image() {
    const std::uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
    if (base == 0) return fail(ErrorCode::unsupported, "this kernel maps no vDSO");
    LineReader maps = TRY(LineReader::open("/proc/self/maps", 16 * 1024));
    for (std::string_view line; maps.next(line);) {
        const auto entry = parse_maps_line(line);
        if (!entry || entry->start != base || entry->end - entry->start > max_image_bytes) continue;
        // The kernel provides the address as an integer. It becomes a pointer only here.
        const auto* image = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(base));  // NOLINT
        return std::string(image, static_cast<std::size_t>(entry->end - entry->start));
    }
    return fail(ErrorCode::unsupported, "this process has no mapping of the vDSO");
}

Result<std::string> read_vdso_image(const std::string& proc_root, std::uint32_t pid, std::uint64_t start,
                                    std::uint64_t end) {
    if (end <= start || end - start > max_image_bytes)
        return fail(ErrorCode::too_large, "a vDSO mapping larger than 64 KiB");
    const UniqueFd memory = TRY(open_read(proc_path(proc_root, pid, "mem")));
    return read_range(memory.get(), start, static_cast<std::size_t>(end - start));
}

}  // namespace flamewire::agent
