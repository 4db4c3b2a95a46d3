#include "profile/formats/perf_data/kernel_names.h"

#include <charconv>
#include <optional>
#include <string>

#include "base/file.h"
#include "elf/elf_file.h"
#include "symbol/kernel.h"

namespace flamewire::profile::perf_data {
namespace {

std::optional<std::uint64_t> address_of(std::string_view line) {
    std::uint64_t address = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    if (error != std::errc() || end == line.data()) return std::nullopt;
    return address;
}

std::optional<std::uint64_t> end_of_text(std::string_view kallsyms) {
    const std::size_t name = kallsyms.find(" _etext\n");
    if (name == std::string_view::npos) return std::nullopt;
    const std::size_t begin = kallsyms.rfind('\n', name);
    return address_of(kallsyms.substr(begin == std::string_view::npos ? 0 : begin + 1));
}

bool runs_here(std::string_view build_id) {
    const Result<std::string> notes = read_file("/sys/kernel/notes");
    constexpr bool big_endian = std::endian::native == std::endian::big;
    return notes && !build_id.empty() && elf::build_id_of_notes(as_bytes_view(*notes), big_endian) == build_id;
}

}  // namespace

Result<symbol::SymbolTable> image_functions(std::string_view kallsyms) {
    const auto end = end_of_text(kallsyms);
    if (!end) return fail(ErrorCode::unsupported, "the kernel's symbols do not say where its code ends");
    std::string image;
    while (!kallsyms.empty()) {
        const std::string_view line = kallsyms.substr(0, kallsyms.find('\n'));
        kallsyms.remove_prefix(std::min(line.size() + 1, kallsyms.size()));
        const auto address = address_of(line);
        if (address && *address <= *end && line.find('[') == std::string_view::npos) image.append(line).append(1, '\n');
    }
    return symbol::parse_kallsyms(image);
}

void name_kernel(RecordingBuilder& builder, wire::Id image, std::string_view build_id,
                 const std::set<std::uint64_t>& addresses) {
    if (addresses.empty() || !runs_here(build_id)) return;
    const Result<std::string> kallsyms = read_file("/proc/kallsyms");
    if (!kallsyms) return;
    const Result<symbol::SymbolTable> functions = image_functions(*kallsyms);
    if (!functions) return;
    std::uint64_t named_to = 0;
    for (const std::uint64_t address : addresses) {
        if (address < named_to) continue;
        const std::uint32_t found = functions->find(address);
        if (found == symbol::SymbolTable::none) continue;
        const symbol::SymbolTable::Range range = functions->range(found);
        // Behind the last symbol is nothing that has a name.
        if (functions->name(found) == "_etext") break;
        builder.symbol({image, range.address, range.end - range.address, builder.string(functions->name(found))});
        named_to = range.end;
    }
}

}  // namespace flamewire::profile::perf_data
