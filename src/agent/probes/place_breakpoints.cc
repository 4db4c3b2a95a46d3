#include "agent/probes/place_breakpoints.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/hw_breakpoint.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/probes/probe_files.h"
#include "agent/process/maps.h"
#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "base/file.h"
#include "base/system.h"
#include "elf/elf_file.h"
#include "elf/function_name.h"
#include "elf/function_symbols.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t line_bytes = 8192, max_symbols = 64, max_named = 5;
constexpr std::uint64_t max_unsized_bytes = 8;

// Where a file has the symbol.
struct Place {
    std::uint64_t device = 0, inode = 0;
    std::uint64_t address = 0, size = 0;  // ELF virtual address, bytes
    bool fixed = false;                   // the addresses of the file are those in memory
    std::vector<elf::Segment> code;
};

std::unexpected<Error> bad(const EventSpec& spec, std::string_view why) {
    return fail(ErrorCode::invalid, fmt::format("{}: {}", spec.name, why));
}

bool on_code(const BreakpointSpec& breakpoint) { return (breakpoint.access & HW_BREAKPOINT_X) != 0; }

Result<Place> find_in_file(const EventSpec& spec, int fd, const std::string& path) {
    const BreakpointSpec& breakpoint = *spec.breakpoint;
    const bool code = on_code(breakpoint);
    const elf::ByteSource source = elf::source_of_fd(fd);
    const auto header = elf::read_header(source);
    if (!header) return bad(spec, fmt::format("{} is not a program or library", path));
    const auto sections = TRY(elf::read_sections(source, *header));
    auto symbols = TRY(elf::find_functions(
        source, *header, sections,
        [&](std::string_view name) {
            return code ? elf::matches_function_name(breakpoint.symbol, name)
                        : elf::matches_variable_name(breakpoint.symbol, name);
        },
        max_symbols, code ? elf::SymbolKind::function : elf::SymbolKind::object));
    const auto aliases = std::ranges::unique(symbols, {}, &elf::FunctionSymbol::address);
    symbols.erase(aliases.begin(), aliases.end());
    const std::string_view kind = code ? "function" : "variable";
    if (symbols.empty())
        return bad(spec, fmt::format("{} has no {} {} (thread-local variables have no fixed address)", path, kind,
                                     breakpoint.symbol));
    if (symbols.size() > 1) {
        std::string all;
        for (std::size_t i = 0; i < symbols.size() && i < max_named; ++i)
            all += fmt::format("{}{}", all.empty() ? "" : ", ", symbols[i].name);
        return bad(spec, fmt::format("{} has {} {}s of this name: {}", path, symbols.size(), kind, all));
    }
    Place place;
    place.address = symbols.front().address;
    place.size = symbols.front().size;
    // A symbol without a size is at most a word, as far as anybody knows.
    const std::uint64_t size = place.size != 0 ? place.size : max_unsized_bytes;
    if (breakpoint.address >= size)
        return bad(spec, place.size != 0 ? fmt::format("{} has only {} bytes", breakpoint.symbol, size)
                                         : fmt::format("the size of {} is unknown, so the offset must be less than {}",
                                                       breakpoint.symbol, size));
    place.fixed = header->type == ET_EXEC;
    place.code = header->segments;
    std::erase_if(place.code, [](const elf::Segment& segment) {
        return segment.type != elf::segment_load || (segment.flags & elf::segment_executable) == 0;
    });
    return place;
}

// What must be added to the file's addresses, from where the process has the file's code.
Result<std::uint64_t> load_bias(const Place& place, std::uint32_t pid, const std::string& path) {
    if (place.fixed) return std::uint64_t{0};
    auto lines = TRY(LineReader::open(fmt::format("/proc/{}/maps", pid), line_bytes));
    const auto page_size = System::current().constant(Constant::page_bytes);
    std::string_view line;
    while (lines.next(line)) {
        const auto entry = parse_maps_line(line);
        if (!entry || !entry->executable || entry->path != path) continue;
        if (const auto address = elf::vaddr_of_offset(place.code, entry->file_offset, page_size))
            return entry->start - *address;
    }
    return fail(ErrorCode::invalid, fmt::format("process {} has no code of {} in memory", pid, path));
}

Result<EventPart> part_of(const EventSpec& spec, const Place& place, std::uint64_t bias, std::uint32_t pid) {
    const BreakpointSpec& breakpoint = *spec.breakpoint;
    std::uint32_t length = breakpoint.length;
    const bool simple = place.size == 1 || place.size == 2 || place.size == 4 || place.size == 8;
    if (length == 0 && simple && breakpoint.address == 0 && !on_code(breakpoint))
        length = static_cast<std::uint32_t>(place.size);
    if (length == 0) length = default_breakpoint_length(breakpoint.access);
    const std::uint64_t symbol = place.address + bias, address = symbol + breakpoint.address;
    // The file may be crafted. The bias may be negative.
    if (address < symbol || address > UINT64_MAX - length || is_kernel_address(address + length - 1))
        return bad(spec, fmt::format("the address {:#x} is not in user space", address));
    return breakpoint_part(spec.name, address, length, breakpoint.access, pid);
}

// Many processes have the same file, which is read once.
Result<const Place*> find_place(const EventSpec& spec, const ProbeFile& file, std::vector<Place>& known) {
    FileStatus status;
    (void)System::current().status_of(file.file.get(), status);
    for (const Place& place : known)
        if (place.device == status.device && place.inode == status.inode) return &place;
    Place place = TRY(find_in_file(spec, file.file.get(), file.path));
    place.device = status.device;
    place.inode = status.inode;
    known.push_back(std::move(place));
    return &known.back();
}

Result<EventPart> place_in_process(const EventSpec& spec, std::uint32_t pid, std::vector<Place>& known) {
    const std::string& wanted = spec.breakpoint->file;
    const std::string name = wanted.empty() ? read_exe("/proc", pid) : wanted;
    const auto files = find_probe_files(name, {{pid}, {}, true});
    if (!files && !read_stat("/proc", pid))
        return fail(ErrorCode::not_found, fmt::format("process {} has exited", pid));
    if (!files)
        return bad(spec, name.empty() ? fmt::format("the program of process {} is not readable", pid)
                                      : fmt::format("process {} has no code of {} in memory", pid, name));
    const ProbeFile& file = files->front();
    const Place* const place = TRY(find_place(spec, file, known));
    return part_of(spec, *place, TRY(load_bias(*place, pid, file.path)), pid);
}

// Only the addresses of a program that is not position-independent are known before it runs.
Result<EventPart> place_before_exec(const EventSpec& spec, std::uint32_t pid, const std::string& program) {
    const std::string& wanted = spec.breakpoint->file;
    const std::string remedy = "start the command first, and give its process with --pid";
    if (!wanted.empty() && wanted != program && !has_file_name(program, wanted))
        return fail(ErrorCode::unsupported, fmt::format("{}: where {} will be is not known before the command runs; {}",
                                                        spec.name, wanted, remedy));
    const UniqueFd file = TRY(open_read(program));
    const Place place = TRY(find_in_file(spec, file.get(), program));
    if (!place.fixed)
        return fail(ErrorCode::unsupported,
                    fmt::format("{}: {} is position-independent, so the address is not known before it runs; {}",
                                spec.name, program, remedy));
    return part_of(spec, place, 0, pid);
}

}  // namespace

Result<bool> place_breakpoints(std::vector<EventSpec>& specs, const std::vector<std::uint32_t>& pids,
                               const std::string& program) {
    for (EventSpec& spec : specs) {
        if (!spec.breakpoint) continue;
        if (pids.empty())
            return fail(ErrorCode::unsupported,
                        fmt::format("{}: with the whole system, CPUs and control groups, give an address instead of a "
                                    "variable, because processes have it at different addresses",
                                    spec.name));
        std::vector<Place> known;
        for (const std::uint32_t pid : pids)
            spec.parts.push_back(program.empty() ? TRY(place_in_process(spec, pid, known))
                                                 : TRY(place_before_exec(spec, pid, program)));
        spec.breakpoint.reset();
    }
    return true;
}

}  // namespace flamewire::agent
