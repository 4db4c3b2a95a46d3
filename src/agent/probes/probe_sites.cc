#include "agent/probes/probe_sites.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <span>

#include "agent/log.h"
#include "agent/probes/probe_arguments.h"
#include "agent/probes/probe_cost.h"
#include "agent/probes/probe_place.h"
#include "agent/probes/return_places.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "elf/function_name.h"
#include "elf/function_symbols.h"
#include "elf/static_probes.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_sites = 256, max_code_bytes = std::size_t{64} << 10, max_named = 5;
constexpr std::size_t longest_instruction = 15;

// The file, as far as probes need it.
struct Code {
    elf::ByteSource source;
    std::string path;
    elf::Header header;
    std::vector<elf::Section> sections;
    std::optional<InstructionClasses> emulated;
};

Result<std::vector<ProbeArgument>> arguments_of(const ProbeSpec& probe, const Code& code) {
    std::vector<ProbeArgument> arguments;
    for (const ProbeArgument& argument : probe.arguments) {
        auto fetch = probe.returns ? with_result_register(argument.fetch, code.header.machine)
                                   : with_argument_registers(argument.fetch, code.header.machine);
        if (!fetch)
            return fail(ErrorCode::unsupported,
                        fmt::format("the value '{}' is not available in {}; {} and registers are", argument.fetch,
                                    code.path, probe.returns ? "at its return, $retval" : "$arg1 to $arg6"));
        // Without a type, a 64-bit kernel reads 8 bytes, which are two arguments of a 32-bit function.
        if (!code.header.is_64 && fetch->find(':') == std::string::npos) *fetch += ":u32";
        arguments.push_back({argument.name, *std::move(fetch)});
    }
    return arguments;
}

// The executable segment with this byte of the file.
const elf::Segment* code_segment(const Code& code, std::uint64_t offset) {
    const auto found = std::ranges::find_if(code.header.segments, [&](const elf::Segment& segment) {
        return segment.type == elf::segment_load && (segment.flags & elf::segment_executable) != 0 &&
               offset >= segment.offset && offset - segment.offset < segment.file_size;
    });
    return found == code.header.segments.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> code_offset(const Code& code, std::uint64_t address) {
    return elf::offset_of_vaddr(code.header.segments, address, elf::segment_executable);
}

std::optional<ProbeInstruction> instruction_at(const Code& code, std::uint64_t offset) {
    const CallConvention* const known = convention_of(code.header.machine);
    const auto bytes = code.source(offset, longest_instruction);
    if (known == nullptr || code.header.big_endian || !bytes) return std::nullopt;
    return probe_instruction(known->arch, std::as_bytes(std::span(*bytes)));
}

// Whether decoding from the start of a function reaches `distance`. Nullopt: there are unknown instructions before it.
std::optional<bool> starts_instruction(const Code& code, std::uint64_t start, std::uint64_t distance) {
    const CallConvention* const known = convention_of(code.header.machine);
    if (known == nullptr || distance > max_code_bytes || code.header.big_endian) return std::nullopt;
    if (known->arch == unwind::Arch::arm) return distance % 4 == 0;
    const auto bytes = code.source(start, static_cast<std::size_t>(distance) + longest_instruction);
    if (!bytes) return std::nullopt;
    std::span<const std::byte> rest = std::as_bytes(std::span(*bytes));
    std::uint64_t at = 0;
    while (at < distance) {
        const auto instruction = probe_instruction(known->arch, rest);
        if (!instruction || instruction->size > rest.size()) return std::nullopt;
        at += instruction->size;
        rest = rest.subspan(instruction->size);
    }
    return at == distance;
}

// The kernel writes a breakpoint at any offset, also into data and into the middle of an instruction.
Result<bool> check_offset(const Code& code, std::uint64_t offset) {
    if (code_segment(code, offset) == nullptr)
        return fail(ErrorCode::invalid, fmt::format("{} has no code at offset {:#x}", code.path, offset));
    const auto instruction = instruction_at(code, offset);
    if (instruction && instruction->instruction_class == InstructionClass::literal_load)
        return fail(ErrorCode::unsupported,
                    fmt::format("the instruction at offset {:#x} of {} is a load that kernels before 6.12 cannot probe "
                                "safely",
                                offset, code.path));
    return true;
}

Result<bool> check_function(const elf::FunctionSymbol& function, const Code& code) {
    if (function.ifunc)
        return fail(
            ErrorCode::unsupported,
            fmt::format("{} in {} selects one of several functions when the program starts; probe that one, for "
                        "example with {}*",
                        function.name, code.path, "__" + function.name));
    if (function.thumb)
        return fail(ErrorCode::unsupported,
                    fmt::format("{} in {} is Thumb code, which Linux cannot probe; it can probe code that was compiled "
                                "with -marm",
                                function.name, code.path));
    return true;
}

// arch_uprobe_analyze_insn() of 64-bit Arm kernels refuses the code of 32-bit processes. A program that maps the file
// only later would run without the probe.
Result<bool> check_machine(const Code& code) {
    utsname names{};
    if (code.header.machine != EM_ARM || ::uname(&names) != 0) return true;
    // 32-bit processes see armv8l with personality(2) PER_LINUX32.
    const std::string_view machine = names.machine;
    if (!machine.starts_with("aarch64") && machine != "armv8l") return true;
    return fail(ErrorCode::unsupported,
                fmt::format("{} is 32-bit Arm code, which 64-bit kernels cannot probe", code.path));
}

// Chooses the instruction of a whole function.
// `in_one_part`: the compiler has not moved rare code of the function elsewhere.
Result<bool> place(ProbeSite& site, const elf::FunctionSymbol& function, bool in_one_part, const Code& code) {
    const CallConvention* const known = convention_of(code.header.machine);
    if (known == nullptr || code.header.big_endian) return true;  // the entry
    const std::string bytes =
        TRY(code.source(site.offset, static_cast<std::size_t>(std::min<std::uint64_t>(function.size, max_code_bytes))));
    const ProbedFunction whole{known->arch, std::as_bytes(std::span(bytes)),
                               in_one_part && function.size != 0 && bytes.size() == function.size};
    const auto chosen =
        place_probe(whole, needs_of(site.arguments, *known), code.emulated.value_or(assumed_emulated(known->arch)));
    if (!chosen)
        return fail(ErrorCode::unsupported, fmt::format("{} in {} begins with a load that this kernel cannot probe "
                                                        "safely",
                                                        function.name, code.path));
    site.offset += chosen->offset;
    site.emulated = chosen->emulated;
    return true;
}

// Adds a site for each instruction where the function returns.
Result<bool> add_returns(std::vector<ProbeSite>& sites, const elf::FunctionSymbol& function, const ProbeSpec& probe,
                         const Code& code) {
    const CallConvention* const known = convention_of(code.header.machine);
    if (known == nullptr || code.header.big_endian)
        return fail(
            ErrorCode::unsupported,
            fmt::format("returns of functions in {} cannot be probed, because its architecture is not supported",
                        code.path));
    const ReturnFile file{code.source, code.header, code.sections,
                          code.path,   known->arch, code.emulated.value_or(assumed_emulated(known->arch))};
    const bool uses_result = std::ranges::any_of(
        probe.arguments, [](const ProbeArgument& argument) { return uses_result_of_function(argument.fetch); });
    ProbeSite site;
    site.name = function.name;
    site.arguments = TRY(arguments_of(probe, code));
    for (const FunctionExit& exit :
         TRY(find_return_places(file, function, needs_of(site.arguments, *known), uses_result))) {
        const auto offset = code_offset(code, exit.address);
        if (!offset) continue;
        site.offset = *offset;
        site.emulated = exit.emulated;
        sites.push_back(site);
    }
    return true;
}

// One symbol for each address: aliases of a pattern are one function. A symbol of exactly that name precedes others.
void remove_aliases(std::vector<elf::FunctionSymbol>& functions, const std::string& name) {
    if (std::ranges::find(functions, name, &elf::FunctionSymbol::name) != functions.end())
        std::erase_if(functions, [&](const elf::FunctionSymbol& one) { return one.name != name; });
    const auto rest = std::ranges::unique(functions, {}, &elf::FunctionSymbol::address);
    functions.erase(rest.begin(), rest.end());
}

Result<bool> check_ambiguous(const std::vector<elf::FunctionSymbol>& functions, const ProbeSpec& probe,
                             const Code& code) {
    if (functions.size() <= 1) return true;
    std::string names;
    for (std::size_t i = 0; i < functions.size() && i < max_named; ++i)
        names += fmt::format("{}{} at {:#x}", names.empty() ? "" : ", ", functions[i].name,
                             code_offset(code, functions[i].address).value_or(0));
    return fail(
        ErrorCode::invalid,
        fmt::format("{} has {} functions named {}: {}{}. Give a symbol, an offset, or a pattern with *", code.path,
                    functions.size(), probe.function, names, functions.size() > max_named ? ", …" : ""));
}

Result<std::vector<ProbeSite>> function_sites(const ProbeSpec& probe, bool by_server, const Code& code) {
    const bool pattern = probe.function.find('*') != std::string::npos;
    // Without a symbol table, parts that exceptions reach are not known.
    const auto has_section = [&](std::string_view name) {
        return std::ranges::find(code.sections, name, &elf::Section::name) != code.sections.end();
    };
    bool moved_parts = !has_section(".symtab") && has_section(".gcc_except_table");
    const auto wanted = [&](std::string_view name) {
        if (elf::matches_function_name(probe.function, name)) return true;
        const std::size_t cold = name.find(".cold");
        moved_parts = moved_parts || (cold != std::string_view::npos &&
                                      elf::matches_function_name(probe.function, name.substr(0, cold)));
        return false;
    };
    auto functions = TRY(elf::find_functions(code.source, code.header, code.sections, wanted, max_sites));
    if (pattern) std::erase_if(functions, [](const elf::FunctionSymbol& one) { return one.ifunc || one.thumb; });
    remove_aliases(functions, probe.function);
    if (!pattern) (void)TRY(check_ambiguous(functions, probe, code));
    std::vector<ProbeSite> sites;
    for (const elf::FunctionSymbol& function : functions) {
        (void)TRY(check_function(function, code));
        const auto offset = code_offset(code, function.address);
        if (!offset) continue;
        if (probe.returns) {
            // Of a pattern, some functions may have unknown code.
            const auto added = add_returns(sites, function, probe, code);
            if (!added && (!pattern || (sites.empty() && &function == &functions.back())))
                return std::unexpected(added.error());
            if (!added) log("{}", added.error().message);
            continue;
        }
        ProbeSite site;
        site.name = function.name;
        site.offset = *offset;
        site.arguments = TRY(arguments_of(probe, code));
        if (probe.offset != 0) {
            if (probe.offset >= function.size)
                return fail(ErrorCode::invalid,
                            fmt::format("{} in {} has only {} bytes", function.name, code.path, function.size));
            if (!starts_instruction(code, site.offset, probe.offset).value_or(!by_server))
                return fail(ErrorCode::invalid, fmt::format("no instruction of {} in {} starts at +{:#x}",
                                                            function.name, code.path, probe.offset));
            site.offset += probe.offset;
            (void)TRY(check_offset(code, site.offset));
        } else {
            (void)TRY(place(site, function, !moved_parts, code));
        }
        sites.push_back(std::move(site));
    }
    return sites;
}

Result<std::vector<ProbeSite>> offset_site(const ProbeSpec& probe, bool by_server, const Code& code) {
    (void)TRY(check_offset(code, probe.offset));
    const elf::Segment& segment = *code_segment(code, probe.offset);
    const std::uint64_t address = segment.vaddr + (probe.offset - segment.offset);
    const auto function = TRY(elf::function_at(code.source, code.header, code.sections, address));
    std::optional<bool> starts;
    if (function)
        starts = starts_instruction(code, probe.offset - (address - function->address), address - function->address);
    // A breakpoint inside an instruction would change what the program does.
    if (!starts.value_or(!by_server))
        return fail(ErrorCode::invalid,
                    fmt::format("no known instruction of {} starts at offset {:#x}{}", code.path, probe.offset,
                                starts ? "" : "; a server may choose only offsets in functions with a symbol"));
    ProbeSite site;
    site.offset = probe.offset;
    site.arguments = TRY(arguments_of(probe, code));
    return std::vector{std::move(site)};
}

// The location of a USDT probe is a nop of any kind.
bool is_nop(const Code& code, std::uint64_t offset) {
    if (convention_of(code.header.machine) == nullptr || code.header.machine == EM_ARM) return true;
    const auto instruction = instruction_at(code, offset);
    if (!instruction) return false;
    using enum InstructionClass;
    const InstructionClasses nops{nop, long_nop, hint};
    return nops.contains(instruction->instruction_class);
}

Result<std::vector<ProbeSite>> static_sites(const ProbeSpec& probe, const Code& code) {
    std::vector<ProbeSite> sites;
    for (const elf::StaticProbe& found : TRY(elf::read_static_probes(code.source, code.header, code.sections))) {
        if (!elf::matches_function_name(probe.provider, found.provider) ||
            !elf::matches_function_name(probe.name, found.name))
            continue;
        if (sites.size() == max_sites)
            return fail(ErrorCode::too_large,
                        fmt::format("{} has more than {} such USDT probes", code.path, max_sites));
        const auto offset = code_offset(code, found.location);
        // Notes of code that the linker removed have no location.
        if (!offset || !is_nop(code, *offset)) continue;
        ProbeSite site;
        site.provider = found.provider;
        site.name = found.name;
        site.offset = *offset;
        if (found.semaphore != 0) {
            const auto counter = elf::offset_of_vaddr(code.header.segments, found.semaphore, 0);
            if (!counter)
                return fail(ErrorCode::unsupported, fmt::format("the semaphore of {}:{} is not in the file {}",
                                                                found.provider, found.name, code.path));
            site.reference_counter = *counter;
        }
        const std::vector<std::string> fetched =
            elf::fetch_arguments(code.header.machine, code.header.is_64, found.arguments);
        std::vector<std::string_view> operands;  // without their types
        for (std::size_t i = 0; i < fetched.size(); ++i) {
            operands.push_back(std::string_view(fetched[i]).substr(0, fetched[i].rfind(':')));
            if (!fetched[i].empty()) site.arguments.push_back({fmt::format("arg{}", i + 1), fetched[i]});
        }
        for (const ProbeArgument& argument : probe.arguments) {
            auto fetch = with_arguments(argument.fetch, operands);
            if (!fetch)
                return fail(ErrorCode::unsupported, fmt::format("the value '{}' is not available at {}:{} in {}",
                                                                argument.fetch, found.provider, found.name, code.path));
            site.arguments.push_back({argument.name, *std::move(fetch)});
        }
        const CallConvention* const known = convention_of(code.header.machine);
        site.emulated =
            known != nullptr && code.emulated.value_or(assumed_emulated(known->arch)).contains(InstructionClass::nop);
        sites.push_back(std::move(site));
    }
    return sites;
}

}  // namespace

Result<std::vector<ProbeSite>> find_probe_sites(const ProbeSpec& probe, int fd, const std::string& path,
                                                std::optional<InstructionClasses> emulated, bool by_server) {
    Code code{elf::source_of_fd(fd), path, {}, {}, emulated};
    code.header = TRY(elf::read_header(code.source));
    (void)TRY(check_machine(code));
    code.sections = TRY(elf::read_sections(code.source, code.header));
    if (probe.kind == ProbeSpec::Kind::usdt) return static_sites(probe, code);
    return probe.function.empty() ? offset_site(probe, by_server, code) : function_sites(probe, by_server, code);
}

}  // namespace flamewire::agent
