// One module with everything that was found for it: the files, the symbol table, the DWARF index. Not thread-safe; the
// owner serializes calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/code_address.h"
#include "symbol/dwarf/dwarf_index.h"
#include "symbol/dwarf/go_functions.h"
#include "symbol/files/locate.h"
#include "symbol/files/symbol_table.h"
#include "symbol/kernel/kernel_modules.h"
#include "symbol/symbolizer.h"
#include "symbol/types/string_pool.h"

namespace flamewire::symbol {

class Module {
public:
    // Finds and opens the files. A module without files has no answers, and its report states why.
    Module(const ModuleIdentity& identity, const Config& config);

    // Appends the frames of `address`, innermost first.
    void find(const CodeAddress& address, std::vector<IndexedFrame>& frames);

    // The symbol that covers an address.
    [[nodiscard]] FunctionRange function(const CodeAddress& address) const;
    [[nodiscard]] ModuleCode code(std::uint64_t start, std::uint64_t size);

    [[nodiscard]] const StringPool& strings() const { return strings_; }
    [[nodiscard]] const ModuleReport& report() const { return files_.report; }

private:
    void open_files(const ModuleIdentity& identity, const Config& config);
    void open_kernel(const ModuleIdentity& identity, const Config& config);
    void open_vdso(const ModuleIdentity& identity);
    void index(const Config& config);
    void explain_split();
    void explain_budget();
    void index_go();
    bool find_in_kernel_module(std::uint64_t vaddr, std::vector<IndexedFrame>& frames);
    void open_map(const ModuleIdentity& identity, const Config& config);
    void explain_missing_code(ModuleCode& code) const;
    std::uint32_t symbol_name(std::uint32_t symbol);
    std::uint32_t name_of(const SymbolTable& table, std::uint32_t symbol);
    [[nodiscard]] std::uint32_t symbol_at(std::uint64_t vaddr) const;
    [[nodiscard]] std::uint64_t lookup_address(const CodeAddress& address) const;
    [[nodiscard]] bool is_signal_return(std::uint64_t vaddr) const;
    void add_symbol(std::uint64_t vaddr, std::size_t first, std::vector<IndexedFrame>& frames);

    StringPool strings_;
    const ModuleKind kind_;
    const std::string path_;  // on the target
    ModuleFiles files_;
    SymbolTable symbols_;
    SymbolTable map_symbols_;                                 // from a linker map; used where symbols_ has nothing
    std::vector<std::optional<std::uint32_t>> symbol_names_;  // by symbol: its name in the string pool, set on demand
    std::unique_ptr<KernelModules> kernel_modules_;           // of the running kernel
    std::unique_ptr<SplitDwarf> split_;
    std::unique_ptr<DwarfIndex> dwarf_;
    std::unique_ptr<GoFunctions> go_;
    std::optional<std::vector<CodeMark>> code_marks_;  // of an Arm file, filled on demand
    std::uint64_t base_ = 0;  // ELF address to which addresses are relative: a vmlinux's _text, else 0
    std::uint64_t address_mask_ = ~std::uint64_t{0};  // clears the Thumb bit
    bool inlines_, demangle_, budget_explained_ = false;
};

}  // namespace flamewire::symbol
