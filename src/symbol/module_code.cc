// The code of a module: the function that contains an address, and the bytes, or why they are missing.
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/path.h"
#include "symbol/demangle.h"
#include "symbol/disassembly/disassembly.h"
#include "symbol/files/code_marks.h"
#include "symbol/module.h"

namespace flamewire::symbol {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;

}  // namespace

FunctionRange Module::function(const CodeAddress& address) const {
    const std::uint64_t vaddr = lookup_address(address);
    const SymbolTable* table = &symbols_;
    std::uint32_t symbol = symbol_at(vaddr);
    if (symbol == SymbolTable::none && go_)
        if (const auto function = go_->function(vaddr))
            return {function->name, function->start - base_, function->end - function->start};
    if (symbol == SymbolTable::none) {
        table = &map_symbols_;
        symbol = table->find(vaddr);
    }
    if (symbol == SymbolTable::none) return {};
    const SymbolTable::Range range = table->range(symbol);
    const std::string_view name = table->name(symbol);
    return {demangle_ ? demangle(name) : std::string(name), range.address - base_, range.end - range.address};
}

ModuleCode Module::code(std::uint64_t start, std::uint64_t size) {
    ModuleCode code;
    code.address = start;
    ObjectFile* const file = files_.code_file.empty() ? nullptr : files_.code ? &*files_.code : &*files_.main;
    if (file == nullptr) {
        explain_missing_code(code);
        return code;
    }
    code.file = files_.code_file;
    code.machine = file->header().machine;
    code.big_endian = file->header().big_endian;
    if (!can_disassemble(code.machine)) {
        code.problem = "instructions are shown for x86-64, AArch64 and 32-bit Arm programs; this is another machine's";
        return code;
    }
    auto bytes = file->code(start + base_, std::min(size, most_bytes));
    if (!bytes) {
        code.problem = fmt::format("{} has no code at {:#x}: {}", code.file, start + base_, bytes.error().message);
        code.remedy = "give exactly the file that runs on the target with --binary FILE";
        return code;
    }
    code.bytes = std::move(*bytes);
    if (code.machine != EM_ARM && code.machine != EM_AARCH64) return code;
    if (!code_marks_) {
        // The mapping symbols of a stripped program are in its debug file.
        ObjectFile& named = files_.debug ? *files_.debug : files_.main ? *files_.main : *file;
        code_marks_ = code_marks_of(named.elf(), code.machine);
    }
    const auto before = [](std::uint64_t address, const CodeMark& mark) { return address < mark.address; };
    const auto first = std::upper_bound(code_marks_->begin(), code_marks_->end(), start + base_, before);
    if (first != code_marks_->begin()) code.begins = std::prev(first)->kind;
    for (auto mark = first; mark != code_marks_->end() && mark->address - base_ - start < code.bytes.size(); ++mark)
        code.marks.push_back({mark->address - base_, mark->kind});
    return code;
}

void Module::explain_missing_code(ModuleCode& code) const {
    const std::string name = file_name(path_);
    code.remedy = "give the program's own file with --binary FILE, or the target's root file system with --sysroot DIR";
    switch (kind_) {
        case ModuleKind::jit:
            code.problem =
                "this code was generated in memory while the program ran: the recording has its names, not its bytes";
            code.remedy.clear();
            return;
        case ModuleKind::kernel:
            code.problem = "the kernel's code is not in a file here: /proc/kallsyms and the agent give only its names";
            code.remedy = "give the target's own vmlinux with --binary FILE";
            return;
        case ModuleKind::vdso:
            code.problem = "the vDSO of the target is not in a file, and differs from this machine's";
            code.remedy.clear();
            return;
        case ModuleKind::file:
            break;
    }
    if (files_.fetched)
        code.problem = fmt::format("the agent sent the symbols of {}, not its code", name);
    else if (files_.main)
        code.problem = fmt::format("{} has only debug info: the code of {} is not here", files_.report.file, name);
    else
        code.problem =
            files_.report.problem.empty() ? fmt::format("no file for {} was found", name) : files_.report.problem;
}

}  // namespace flamewire::symbol
