#include "agent/probes/return_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "unwind/arch/arch.h"
#include "unwind/tables/module_tables.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t max_code_bytes = std::uint64_t{256} << 10;
constexpr std::size_t max_parts = 8, max_exits = 64, max_targets = 32;
// Searching 32 MiB for branches takes 0.1 s.
constexpr std::uint64_t max_searched_bytes = std::uint64_t{32} << 20, block_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t longest_branch = 6;

const elf::Section* section_of(const ReturnFile& file, std::string_view name) {
    const auto found = std::ranges::find(file.sections, name, &elf::Section::name);
    return found == file.sections.end() || found->type == elf::section_nobits ? nullptr : &*found;
}

// The compilers' names of rare code of a function.
bool is_part_name(std::string_view name, std::string_view function) {
    constexpr std::string_view suffix = ".cold";
    if (!name.starts_with(function) || !name.substr(function.size()).starts_with(suffix)) return false;
    const std::string_view rest = name.substr(function.size() + suffix.size());
    return rest.empty() || rest.front() == '.';
}

std::unexpected<Error> uncertain(std::string why) { return fail(ErrorCode::unsupported, std::move(why)); }

Result<std::vector<CodePart>> parts_of(const ReturnFile& file, const elf::FunctionSymbol& function) {
    const std::vector<elf::FunctionSymbol> others = TRY(elf::find_functions(
        file.source, file.header, file.sections,
        [&](std::string_view name) { return is_part_name(name, function.name); }, max_parts));
    if (std::ranges::adjacent_find(others, {}, &elf::FunctionSymbol::name) != others.end())
        return uncertain("several functions have parts of this name");
    std::vector<CodePart> parts;
    std::uint64_t left = max_code_bytes;
    for (std::size_t i = 0; i <= others.size(); ++i) {
        const elf::FunctionSymbol& symbol = i == 0 ? function : others[i - 1];
        const auto offset = elf::offset_of_vaddr(file.header.segments, symbol.address, elf::segment_executable);
        if (!offset || symbol.size == 0) return uncertain("the size of its code is unknown");
        if (symbol.size > left) return uncertain("it has more than 256 KiB of code");
        left -= symbol.size;
        parts.push_back({symbol.address, TRY(elf::read_exactly(file.source, *offset, symbol.size, "code"))});
    }
    return parts;
}

// An entry of a table of addresses. Only x86 code that is not position-independent has such tables.
std::optional<std::uint64_t> address_at(const ReturnFile& file, std::uint64_t address) {
    const std::size_t size = file.header.is_64 ? 8 : 4;
    const auto offset = elf::offset_of_vaddr(file.header.segments, address, 0);
    const auto bytes = offset ? file.source(*offset, size) : Result<std::string>("");
    if (!bytes || bytes->size() != size) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>((*bytes)[i]);
    return value;
}

// Whether any code of the file has such a branch; `unknown` if there is too much code.
bool search_code(const ReturnFile& file, bool unknown, const std::function<bool(const Branch&)>& wanted) {
    std::uint64_t left = max_searched_bytes;
    for (const elf::Segment& segment : file.header.segments) {
        if (segment.type != elf::segment_load || (segment.flags & elf::segment_executable) == 0) continue;
        if (segment.file_size > left) return unknown;
        left -= segment.file_size;
        for (std::uint64_t at = 0; at < segment.file_size; at += block_bytes) {
            const std::uint64_t size = std::min(block_bytes + longest_branch, segment.file_size - at);
            const auto code = file.source(segment.offset + at, static_cast<std::size_t>(size));
            if (!code) return unknown;
            if (any_branch(file.arch, std::as_bytes(std::span(*code)), segment.vaddr + at, wanted)) return true;
        }
    }
    return false;
}

bool is_entered(const ReturnFile& file, const std::vector<CodePart>& parts) {
    const auto inside = [&](std::uint64_t address) {
        return std::ranges::any_of(parts, [&](const CodePart& part) { return part.contains(address); });
    };
    return search_code(file, true, [&](const Branch& branch) {
        return !branch.call && branch.to != parts.front().start && inside(branch.to) && !inside(branch.from);
    });
}

// The tables of exceptions and stacks, which also name the parts of functions in stripped files.
class Frames {
public:
    explicit Frames(const ReturnFile& file) : file_(file) {
        auto opened = unwind::ModuleTables::open(0, file.source, pages_, work_);
        if (opened) tables_ = std::move(*opened);
    }
    [[nodiscard]] bool is_balanced(std::uint64_t address) {
        const auto row = tables_ ? tables_->row_at(address) : std::nullopt;
        const auto& names = unwind::arch_info(file_.arch).names;
        if (!row || row->cfa_is_expression || row->cfa_register != names.sp) return false;
        const bool in_link = file_.arch == unwind::Arch::aarch64 || file_.arch == unwind::Arch::arm;
        return row->cfa_offset == (in_link ? 0 : names.word_size);
    }
    // Appends the part with this code; false if there is none.
    bool add_part(std::vector<CodePart>& parts, std::uint64_t address) {
        const auto range = tables_ ? tables_->function_at(address) : std::nullopt;
        if (!range || range->size > max_code_bytes || parts.size() == max_parts) return false;
        const auto offset = elf::offset_of_vaddr(file_.header.segments, range->start, elf::segment_executable);
        auto code = offset ? elf::read_exactly(file_.source, *offset, range->size, "code") : Result<std::string>("");
        if (!code || code->empty()) return false;
        parts.push_back({range->start, *std::move(code)});
        return true;
    }

private:
    const ReturnFile& file_;
    unwind::TableWork work_;
    unwind::PageCache pages_{max_code_bytes};
    std::unique_ptr<unwind::ModuleTables> tables_;
};

std::string name_at(const ReturnFile& file, std::uint64_t address) {
    const auto found = elf::function_at(file.source, file.header, file.sections, address);
    return found && *found && (*found)->address == address ? (*found)->name : std::string();
}

// Without a symbol table, a jump may also lead to code that the compiler has moved out of the function. Such code is
// never called.
bool is_function(const ReturnFile& file, std::uint64_t address) {
    if (section_of(file, ".symtab") != nullptr) return true;
    const auto is_stub = [&](const elf::Section& section) {
        return section.name.starts_with(".plt") && address >= section.address &&
               address - section.address < section.size;
    };
    if (std::ranges::any_of(file.sections, is_stub)) return true;
    if (!name_at(file, address).empty()) return true;
    return search_code(file, false, [&](const Branch& branch) { return branch.call && branch.to == address; });
}

// Whether functions of the file may catch exceptions: those of C have tables of exceptions only for cancellation.
bool may_catch(const ReturnFile& file) {
    if (section_of(file, ".gcc_except_table") == nullptr && section_of(file, ".ARM.extab") == nullptr) return false;
    const elf::Section* const names = section_of(file, ".dynstr");
    if (names == nullptr || names->size > max_searched_bytes) return true;
    const auto text = file.source(names->offset, static_cast<std::size_t>(names->size));
    return !text || text->find("__cxa_begin_catch") != std::string::npos;
}

// unsupported: the reason why they are not certain.
Result<std::vector<FunctionExit>> all_exits(const ReturnFile& file, const elf::FunctionSymbol& function,
                                            const ProbeNeeds& needs) {
    ExitSearch search{.arch = file.arch, .parts = TRY(parts_of(file, function))};
    Frames frames(file);
    search.table_entry = [&](std::uint64_t address) { return address_at(file, address); };
    search.entered_from_outside = [&] { return is_entered(file, search.parts); };
    // Each question may read all code of the file.
    std::map<std::uint64_t, bool> known_targets;
    search.is_function = [&](std::uint64_t address) {
        const auto known = known_targets.find(address);
        if (known != known_targets.end()) return known->second;
        if (known_targets.size() == max_targets) return false;
        return known_targets[address] = is_function(file, address);
    };
    search.is_balanced = [&](std::uint64_t address) { return frames.is_balanced(address); };
    search.catches = may_catch(file);
    search.emulated = file.emulated;
    search.needs = needs;
    const std::size_t known_parts = search.parts.size();
    FunctionExits found = find_exits(search);
    while (found.other_code != 0 && frames.add_part(search.parts, found.other_code)) found = find_exits(search);
    if (search.parts.size() != known_parts && is_entered(file, search.parts))
        return uncertain("it shares code with other functions");
    if (!found.problem.empty())
        return uncertain(
            fmt::format("{} at {}+{:#x}", found.problem, function.name, found.problem_at - function.address));
    if (found.exits.size() > max_exits) return uncertain("it returns at more than 64 instructions");
    // Another function in the same code returns there, too.
    const auto last = std::ranges::find_if(found.exits.rbegin(), found.exits.rend(), [&](const FunctionExit& exit) {
        return search.parts.front().contains(exit.address);
    });
    if (last != found.exits.rend()) {
        const auto owner = elf::function_at(file.source, file.header, file.sections, last->address);
        if (owner && *owner && (*owner)->address != function.address)
            return uncertain("it shares code with other functions");
    }
    return std::move(found.exits);
}

}  // namespace

Result<std::vector<FunctionExit>> find_return_places(const ReturnFile& file, const elf::FunctionSymbol& function,
                                                     const ProbeNeeds& needs, bool uses_result) {
    auto exits = all_exits(file, function, needs);
    if (!exits)
        return fail(exits.error().code,
                    fmt::format("where {} in {} returns is not certain: {}. Probe its entry with uprobe:",
                                function.name, file.path, exits.error().message));
    const auto tail = std::ranges::find(*exits, true, &FunctionExit::tail_call);
    if (!uses_result || tail == exits->end()) return exits;
    const std::string name = tail->target == 0 ? std::string() : name_at(file, tail->target);
    return fail(ErrorCode::unsupported,
                fmt::format("{} in {} ends with a jump to {} at {}+{:#x}, so its result is not known there. "
                            "Remove $retval, or probe {}",
                            function.name, file.path, name.empty() ? "another function" : name, function.name,
                            tail->address - function.address, name.empty() ? "that function" : name));
}

}  // namespace flamewire::agent
