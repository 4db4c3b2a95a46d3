// /proc/kallsyms without keeping it: the table has 100,000 to 300,000 lines (10 MB and more as values), an agent asks
// for a few hundred addresses. Source of the format: the kernel's kernel/kallsyms.c, s_show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

struct KallsymsEntry {
    std::uint64_t address = 0;
    char type = '?';  // as nm: t and T are code
    std::string_view name;
    std::string_view module;  // without brackets; empty: the kernel image
    [[nodiscard]] bool is_code() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
};
// Nothing when the line is none of kallsyms. Views into `line`.
std::optional<KallsymsEntry> parse_kallsyms_line(std::string_view line);

// Address of _text; it stands near the start, so only as much as needed is read. nothing: no such file or symbol.
// 0: kptr_restrict hides addresses from us.
std::optional<std::uint64_t> read_kernel_text(const std::string& proc_root);

struct KernelFunction {
    std::uint64_t address = 0, size = 0;
    std::string name;  // "name [module]" for functions of kernel modules
    bool operator==(const KernelFunction&) const = default;
};

// Finds the functions that hold given absolute addresses, one kallsyms line after the other in any order. Memory is
// proportional to the addresses asked for.
class FunctionSearch {
public:
    explicit FunctionSearch(std::vector<std::uint64_t> addresses);
    void offer(const KallsymsEntry& entry);
    // By address, each function once. A function ends where the next symbol begins.
    [[nodiscard]] std::vector<KernelFunction> functions() const;

private:
    // What was seen in the gap (previous wanted address, this wanted address].
    struct Gap {
        std::uint64_t last = 0;    // highest symbol
        std::uint64_t first = 0;   // lowest symbol
        char type = 0;             // of `last`; 0: none seen
        std::string name, module;  // of `last`
    };
    std::vector<std::uint64_t> wanted_;  // sorted, distinct
    std::vector<Gap> gaps_;              // one more than wanted_: what lies above all
};

// One pass over proc_root/kallsyms.
Result<std::vector<KernelFunction>> find_kernel_functions(const std::string& proc_root,
                                                          std::vector<std::uint64_t> addresses);

}  // namespace flamewire::agent
