#include "agent/control/list_events.h"

#include <algorithm>
#include <string_view>

#include "agent/perf/tracepoint.h"
#include "agent/process/kallsyms.h"
#include "agent/process/proc_text.h"
#include "base/wildcard.h"
#include "elf/function_name.h"
#include "elf/function_symbols.h"
#include "elf/static_probes.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_functions = 16'384;

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

class Lister {
public:
    Lister(const EventQuery& query, EventList& list) : list_(list), pattern_("*" + lower(query.search) + "*") {
        std::ranges::replace(pattern_, ' ', '*');
    }

    Result<bool> add_tracepoints(const Sysfs& sysfs);
    Result<bool> add_kernel_functions();
    Result<bool> add_file(const elf::ByteSource& source, bool functions);
    void add(std::string_view name) {
        if (matches(name)) add({.name = std::string(name)});
    }

private:
    [[nodiscard]] bool matches(std::string_view name) const { return matches_wildcards(pattern_, lower(name)); }
    void add(ListedEvent event) {
        if (++list_.total > EventList::max_events) return;
        event.file = static_cast<std::uint32_t>(list_.files.size());
        list_.events.push_back(std::move(event));
    }

    EventList& list_;
    std::string pattern_;
};

Result<bool> Lister::add_tracepoints(const Sysfs& sysfs) {
    for (const std::string& folder : tracefs_folders(sysfs)) {
        const auto events = sysfs.read(folder + "/available_events");
        if (!events) continue;
        for (std::string_view rest = *events; !rest.empty();) {
            const std::string_view name = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(std::min(name.size() + 1, rest.size()));
            // Probes of agents are in the file, too.
            if (!name.starts_with("flamewire_")) add(name);
        }
        return true;
    }
    return fail(
        ErrorCode::not_found,
        "tracepoints need tracefs, which is not mounted, or may only be read by root here. Try, as root: mount -t "
        "tracefs tracefs /sys/kernel/tracing");
}

Result<bool> Lister::add_kernel_functions() {
    LineReader lines = TRY(LineReader::open("/proc/kallsyms", 65'536));
    for (std::string_view line; lines.next(line);)
        if (const auto entry = parse_kallsyms_line(line); entry && entry->is_code() && !entry->name.ends_with(".cold"))
            add(entry->name);
    return true;
}

Result<bool> Lister::add_file(const elf::ByteSource& source, bool functions) {
    const elf::Header header = TRY(elf::read_header(source));
    const std::vector<elf::Section> sections = TRY(elf::read_sections(source, header));
    const auto offset_of = [&](std::uint64_t address) {
        return elf::offset_of_vaddr(header.segments, address, elf::segment_executable);
    };
    if (!functions) {
        for (const elf::StaticProbe& probe : TRY(elf::read_static_probes(source, header, sections)))
            // Notes of code that the linker removed have no location.
            if (offset_of(probe.location)) add(probe.provider + ":" + probe.name);
        return true;
    }
    const auto wanted = [&](std::string_view symbol) {
        return matches(symbol) || (symbol.starts_with('_') && matches(elf::function_path(symbol)));
    };
    for (elf::FunctionSymbol& function : TRY(elf::find_functions(source, header, sections, wanted, max_functions))) {
        const auto offset = offset_of(function.address);
        const char* const problem = function.ifunc   ? "selects one of several functions when the program starts"
                                    : function.thumb ? "is Thumb code, which Linux cannot probe"
                                                     : nullptr;
        if (offset) add({.name = std::move(function.name), .offset = *offset, .problem = problem});
    }
    return true;
}

}  // namespace

Result<bool> list_events(const EventQuery& query, const ProbeTarget& target, const Sysfs& sysfs, EventList& list) {
    Lister lister(query, list);
    switch (query.kind) {
        case EventKind::tracepoint: (void)TRY(lister.add_tracepoints(sysfs)); break;
        case EventKind::kernel_function: (void)TRY(lister.add_kernel_functions()); break;
        case EventKind::file:
            for (const std::string& path : mapped_code_files(target.pids)) lister.add(path);
            break;
        case EventKind::function:
        case EventKind::usdt:
            for (ProbeFile& file : TRY(find_probe_files(query.file, target))) {
                auto added = lister.add_file(elf::source_of_fd(file.file.get()), query.kind == EventKind::function);
                if (!added) {
                    added.error().message.insert(0, file.path + ": ");
                    return std::unexpected(std::move(added).error());
                }
                list.files.push_back(std::move(file.path));
            }
    }
    return true;
}

}  // namespace flamewire::agent
