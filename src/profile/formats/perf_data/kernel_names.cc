#include "profile/formats/perf_data/kernel_names.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "symbol/kernel/kernel.h"

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

// Symbols after _etext are not code of the image, and each line costs kernel time. Without an _etext line, reads
// everything.
Result<std::string> read_to_end_of_text(const std::string& path) {
    constexpr std::size_t piece = std::size_t{64} << 10, longest_line = 1024;
    const UniqueFd fd = TRY(open_read(path));
    std::string text;
    while (true) {
        const std::size_t before = text.size();
        text.resize(before + piece);
        const ssize_t got = ::read(fd.get(), text.data() + before, piece);
        if (got < 0) return fail_errno("cannot read " + path, errno);
        text.resize(before + static_cast<std::size_t>(got));
        if (got == 0 || text.find(" _etext\n", before - std::min(before, longest_line)) != std::string::npos)
            return text;
    }
}

bool runs_here(std::string_view build_id) {
    const Result<std::string> notes = read_file("/sys/kernel/notes");
    constexpr bool big_endian = std::endian::native == std::endian::big;
    return notes && !build_id.empty() && elf::build_id_of_notes(as_bytes_view(*notes), big_endian) == build_id;
}

}  // namespace

Result<symbol::SymbolTable> image_functions(std::string_view kallsyms) {
    const auto end = end_of_text(kallsyms);
    if (!end) return fail(ErrorCode::unsupported, "the kernel's symbols do not state where its code ends");
    std::string image;
    while (!kallsyms.empty()) {
        const std::string_view line = kallsyms.substr(0, kallsyms.find('\n'));
        kallsyms.remove_prefix(std::min(line.size() + 1, kallsyms.size()));
        const auto address = address_of(line);
        if (address && *address <= *end && line.find('[') == std::string_view::npos) image.append(line).append(1, '\n');
    }
    return symbol::parse_kallsyms(image);
}

std::string lines_around(std::string_view kallsyms, const std::set<std::uint64_t>& addresses) {
    std::string kept;
    std::optional<std::uint64_t> base;
    auto wanted = addresses.begin();
    // `group` points to the first line of the current address. `next`: the previous address is wanted, so this one
    // marks its end.
    std::uint64_t address = 0;
    const char* group = kallsyms.data();
    bool next = false, names = false;
    const auto close = [&](const char* end, std::uint64_t until) {
        bool holds = false;
        for (; base && wanted != addresses.end() && *base + *wanted < until; ++wanted)
            holds = holds || *base + *wanted >= address;
        if (holds || next || names) kept.append(group, end);
        next = holds;
        names = false;
        group = end;
    };
    while (!kallsyms.empty()) {
        const std::string_view line = kallsyms.substr(0, kallsyms.find('\n'));
        const auto here = address_of(line);
        // Skip data between functions. Its lines stay with the preceding function, where lookups ignore them.
        const std::size_t type = line.find(' ') + 1;
        if (type < line.size() && std::string_view("tTwW").find(line[type]) == std::string_view::npos) {
            kallsyms.remove_prefix(std::min(line.size() + 1, kallsyms.size()));
            continue;
        }
        if (!here || *here < address || line.find('[') != std::string_view::npos) return std::string();
        if (*here > address) {
            close(line.data(), *here);
            address = *here;
        }
        if (line.ends_with(" _text") || (!base && line.ends_with(" _stext"))) base = address;
        names = names || line.ends_with(" _text") || line.ends_with(" _stext") || line.ends_with(" _etext");
        kallsyms.remove_prefix(std::min(line.size() + 1, kallsyms.size()));
        if (line.ends_with(" _etext")) {
            close(kallsyms.data(), std::numeric_limits<std::uint64_t>::max());
            return kept;
        }
    }
    return std::string();
}

void name_kernel(RecordingBuilder& builder, wire::Id image, std::string_view build_id,
                 const std::set<std::uint64_t>& addresses) {
    if (addresses.empty() || !runs_here(build_id)) return;
    const Result<std::string> kallsyms = read_to_end_of_text("/proc/kallsyms");
    if (!kallsyms) return;
    const std::string lines = lines_around(*kallsyms, addresses);
    const Result<symbol::SymbolTable> functions = image_functions(lines.empty() ? *kallsyms : lines);
    if (!functions) return;
    std::uint64_t named_to = 0;
    for (const std::uint64_t address : addresses) {
        if (address < named_to) continue;
        const std::uint32_t found = functions->find(address);
        if (found == symbol::SymbolTable::none) continue;
        const symbol::SymbolTable::Range range = functions->range(found);
        // No address after _etext has a name.
        if (functions->name(found) == "_etext") break;
        builder.symbol({image, range.address, range.end - range.address, builder.string(functions->name(found))});
        named_to = range.end;
    }
}

}  // namespace flamewire::profile::perf_data
