#include "symbol/module.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>

#include "base/path.h"
#include "symbol/demangle.h"
#include "symbol/disassembly/disassembly.h"
#include "symbol/files/code_marks.h"
#include "symbol/files/map_lookup.h"
#include "symbol/files/plt.h"
#include "symbol/files/vdso.h"
#include "symbol/kernel/kernel.h"

namespace flamewire::symbol {

// Limit of the code of a function.
static constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;

Module::Module(const ModuleIdentity& identity, const Config& config)
    : kind_(identity.kind), path_(identity.path), inlines_(config.inlines), demangle_(config.demangle) {
    switch (identity.kind) {
        case ModuleKind::file: open_files(identity, config); break;
        case ModuleKind::kernel: open_kernel(identity, config); break;
        case ModuleKind::vdso: open_vdso(identity); break;
        case ModuleKind::jit: break;  // JIT code has no file; its names are in the recording
    }
    symbol_names_.resize(symbols_.size());
}

void Module::open_files(const ModuleIdentity& identity, const Config& config) {
    files_ = locate(identity, config);
    index(config);
    index_go();
    if (files_.report.quality <= Quality::dynamic_symbols) open_map(identity, config);
}

// A stripped file may still have dynamic symbols. They take precedence over names from the map.
void Module::open_map(const ModuleIdentity& identity, const Config& config) {
    std::optional<FoundMap> found = map_of(identity, files_.main ? files_.report.file : std::string(), config.maps);
    if (!found) return;
    const bool arm = found->map.arm;
    if (arm) address_mask_ = ~std::uint64_t{1};
    for (const MapSymbol& symbol : found->map.symbols) {
        if (files_.main ? !files_.main->is_code(symbol.address) : !symbol.text) continue;
        const std::uint64_t address = arm ? symbol.address & ~std::uint64_t{1} : symbol.address;
        map_symbols_.add(address, symbol.size, address, symbol.name);
    }
    map_symbols_.sort();
    ModuleReport& report = files_.report;
    const std::string before = report.problem.empty() ? "" : " (" + report.problem + ")";
    if (map_symbols_.size() == 0) {
        report.problem =
            "the linker map " + found->file + " names no code of this file: it is of another link" + before;
        return;
    }
    report.quality = Quality::linker_map;
    report.map_file = std::move(found->file);
    report.problem = "names come from the linker map " + report.map_file +
                     ": no lines, no inlined functions, and local functions only where each has a section" + before;
}

// A vmlinux of the same build has lines. Without it, use the running kernel's names if it is this machine's.
void Module::open_kernel(const ModuleIdentity& identity, const Config& config) {
    files_ = locate(identity, config);
    if (files_.main || files_.debug) {
        index(config);
        base_ = symbols_.kernel_text().value_or(0);
        return;
    }
    files_.report.tried.emplace_back("/proc/kallsyms");
    Result<SymbolTable> running = running_kernel_symbols(identity.boot_id);
    if (running) {
        symbols_ = std::move(*running);
        struct utsname name{};
        const std::string release = ::uname(&name) == 0 ? name.release : "";
        kernel_modules_ = std::make_unique<KernelModules>(config, release, "/sys/module", strings_);
        files_.report.quality = Quality::symbols;
        files_.report.file = "/proc/kallsyms";
        files_.report.found = FoundBy::this_machine;
        files_.report.problem.clear();
        files_.report.remedy.clear();
        return;
    }
    files_.report.problem = "no kernel symbols: " + running.error().message;
    files_.report.remedy =
        running.error().code == ErrorCode::permission
            ? "run the server with `sysctl -w kernel.kptr_restrict=0 kernel.perf_event_paranoid=1`, or as root"
            : "give the target's own vmlinux with --binary FILE";
}

void Module::open_vdso(const ModuleIdentity& identity) {
    files_.report.tried.emplace_back("[vdso] of this machine");
    Result<ObjectFile> own = own_vdso(identity.build_id);
    if (!own) {
        files_.report.problem = "no symbols for the vDSO: " + own.error().message;
        return;
    }
    files_.report.quality = own->quality();
    files_.report.file = "[vdso]";
    files_.report.found = FoundBy::this_machine;
    symbols_ = SymbolTable::of_file(*own);
    files_.code_file = "[vdso]";
    files_.code.emplace(std::move(*own));
}

void Module::index(const Config& config) {
    // The debug file has the full symbol table, which was stripped from the module.
    ObjectFile* symbols = files_.debug ? &*files_.debug : files_.main ? &*files_.main : nullptr;
    if (symbols == nullptr) return;
    if (symbols->header().machine == EM_ARM) address_mask_ = ~std::uint64_t{1};
    symbols_ = SymbolTable::of_file(*symbols);
    if (symbols_.size() == 0 && files_.main) symbols_ = SymbolTable::of_file(*files_.main);
    if (files_.main) {  // a debug file has no code
        add_plt_symbols(files_.main->elf(), files_.main->header().machine, symbols_);
        symbols_.sort();
    }
    if (symbols->quality() != Quality::debug_info) return;
    ModuleReport& report = files_.report;
    split_ = std::make_unique<SplitDwarf>(config, std::vector{report.file, report.debug_file});
    dwarf_ =
        std::make_unique<DwarfIndex>(*symbols, strings_, config.demangle ? Names::readable : Names::linkage, *split_);
    explain_budget();
    if (dwarf_->usable()) return explain_split();
    report.quality = symbols_.size() == 0 ? Quality::none : Quality::symbols;
    report.problem =
        "the debug info of " + (files_.debug ? report.debug_file : report.file) + " is damaged or of an unknown kind";
    report.remedy = "build it with -g, DWARF 4 or 5, and give the unstripped file with --binary FILE";
}

// Also opened if there is debug info, because that may cover only the program's C code.
void Module::index_go() {
    const ObjectFile* const file = files_.main ? &*files_.main : files_.debug ? &*files_.debug : nullptr;
    if (file == nullptr) return;
    go_ = GoFunctions::open(*file, strings_);
    ModuleReport& report = files_.report;
    if (!go_ || report.quality == Quality::debug_info) return;
    const bool explains_more = report.mismatch || dwarf_ != nullptr;  // another build, or damaged debug info
    const std::string before = explains_more ? " (" + report.problem + ")" : "";
    report.quality = Quality::go_table;
    report.problem = fmt::format("names{} come from Go's function table in {}, which has no usable debug info{}",
                                 go_->has_inlined_calls() ? ", lines and inlined functions" : " and lines",
                                 report.file.empty() ? report.debug_file : report.file, before);
    report.remedy = "build it without -ldflags=\"-s -w\" and without strip, and give that file with --binary FILE";
}

// The program still has its lines.
void Module::explain_split() {
    const DwarfIndex::Split split = dwarf_->split();
    if (split.missing == 0) return;
    ModuleReport& report = files_.report;
    const std::string& file = files_.debug ? report.debug_file : report.file;
    report.problem = fmt::format(
        "{} of the {} .dwo files of {} are not here or of another build (the first: {}): no inlined functions there",
        split.missing, split.units, file, split.first_missing);
    if (!split_->refused().empty()) report.problem += " (" + split_->refused() + ")";
    report.remedy = fmt::format(
        "put {}.dwp beside it (llvm-dwp -e {}), or give the folder of the .dwo files with --path-map FROM=TO", file,
        file);
}

// Reported only once, because it does not change. Units that were indexed before keep their lines.
void Module::explain_budget() {
    if (!dwarf_->budget().exceeded() || budget_explained_) return;
    budget_explained_ = true;
    ModuleReport& report = files_.report;
    report.problem = fmt::format(
        "the debug info of {} expands to more than {} MiB of lines and address ranges: functions beyond that have no "
        "lines and no inlined functions",
        files_.debug ? report.debug_file : report.file, dwarf_->budget().limit() >> 20);
    report.remedy = "if the file is yours, build it with -g1, which has lines only";
}

std::uint32_t Module::symbol_name(std::uint32_t symbol) {
    std::optional<std::uint32_t>& name = symbol_names_[symbol];
    if (!name) name = name_of(symbols_, symbol);
    return *name;
}

std::uint32_t Module::name_of(const SymbolTable& table, std::uint32_t symbol) {
    return strings_.intern(demangle_ ? demangle(table.name(symbol)) : std::string(table.name(symbol)));
}

// A symbol without size extends over whatever follows. Go's table shows where another function begins.
std::uint32_t Module::symbol_at(std::uint64_t vaddr) const {
    const std::uint32_t symbol = symbols_.find(vaddr);
    if (symbol == SymbolTable::none || !go_) return symbol;
    const auto function = go_->function(vaddr);
    return function && symbols_.range(symbol).address < function->start ? SymbolTable::none : symbol;
}

// Adds what the symbol table has for the outermost of the frames from `first` on. The linkage name is that of the
// function that was really called, and it distinguishes clones and parts (.cold, .isra.0). For a local symbol without
// debug info it also adds the bare file name.
void Module::add_symbol(std::uint64_t vaddr, std::size_t first, std::vector<IndexedFrame>& frames) {
    const std::uint32_t symbol = symbol_at(vaddr);
    if (symbol == SymbolTable::none) {
        const std::uint32_t named = map_symbols_.find(vaddr);
        if (named == SymbolTable::none) return;
        if (frames.size() == first) frames.emplace_back();
        frames.back().function = name_of(map_symbols_, named);
        return;
    }
    if (frames.size() == first) frames.emplace_back();
    frames.back().function = symbol_name(symbol);
    if (frames.back().file == 0) frames.back().file = strings_.intern(symbols_.file(symbol));
}

// Resolves kallsyms' "function [module]" if the module's file is available.
bool Module::find_in_kernel_module(std::uint64_t vaddr, std::vector<IndexedFrame>& frames) {
    const std::uint32_t symbol = symbols_.find(vaddr);
    if (symbol == SymbolTable::none) return false;
    const std::string_view name = symbols_.name(symbol);
    const std::size_t open = name.rfind(" [");
    if (open == std::string_view::npos || !name.ends_with(']')) return false;
    return kernel_modules_->find(std::string(name.substr(open + 2, name.size() - open - 3)), name.substr(0, open),
                                 vaddr - symbols_.range(symbol).address, frames);
}

// A return address may be the first byte of another line, scope or function, because the call is before it. A signal
// handler, however, returns to the first byte of __restore_rt.
std::uint64_t Module::lookup_address(const CodeAddress& address) const {
    const std::uint64_t vaddr = (address.value + base_) & address_mask_;
    if (!address.return_address) return vaddr;
    const std::uint32_t symbol = symbols_.find(vaddr);
    const bool begins = symbol != SymbolTable::none && symbols_.range(symbol).address == vaddr;
    return begins && is_signal_return(vaddr) ? vaddr : vaddr - 1;
}

// Recognizes __restore_rt on x86-64 by its code, because a libc may have no symbol for it: mov $15, %rax; syscall.
bool Module::is_signal_return(std::uint64_t vaddr) const {
    constexpr std::string_view code("\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
    const ObjectFile* const file = files_.code ? &*files_.code : files_.main ? &*files_.main : nullptr;
    if (file == nullptr || file->header().machine != EM_X86_64) return false;
    const auto found = file->code(vaddr, code.size());
    return found && *found == code;
}

void Module::find(const CodeAddress& address, std::vector<IndexedFrame>& frames) {
    const std::uint64_t vaddr = lookup_address(address);
    const std::size_t first = frames.size();
    if (kernel_modules_ && find_in_kernel_module(vaddr, frames)) {
        if (!inlines_) frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end() - 1);
        return;
    }
    if (dwarf_) {
        dwarf_->find(vaddr, frames);
        explain_budget();
    }
    if (go_ && frames.size() == first) go_->find(vaddr, frames);
    add_symbol(vaddr, first, frames);
    if (frames.size() == first && address.return_address && is_signal_return(vaddr + 1))
        frames.emplace_back().function = strings_.intern("__restore_rt");
    if (frames.size() == first) return;
    if (!inlines_) frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end() - 1);
    if (frames.size() == first + 1 && frames[first].function == 0 && frames[first].file == 0) frames.pop_back();
}

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
        case ModuleKind::file: break;
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
