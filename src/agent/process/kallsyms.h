// Reads /proc/kallsyms without storing it: the table has 100,000 to 300,000 lines (10 MB or more in memory), and an
// agent needs a few hundred addresses. Source of the format: the kernel's kernel/kallsyms.c, s_show.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/proc_text.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct KallsymsEntry {
    std::uint64_t address = 0;
    char type = '?';  // as in nm: t and T are code
    std::string_view name;
    std::string_view module;  // without brackets; empty: the kernel image
    [[nodiscard]] bool is_code() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
};
// Nothing if the line is not from kallsyms. Views into `line`.
std::optional<KallsymsEntry> parse_kallsyms_line(std::string_view line);

// The base of kernel addresses: _text, or _stext if the table has no _text (arm64, unless it contains all symbols).
// Both are near the start, so only the beginning is read. Nothing: the file or symbol does not exist. address 0:
// kptr_restrict hides addresses from us.
struct KernelBase {
    std::uint64_t address = 0;
    bool is_text = true;  // false: _stext
    bool operator==(const KernelBase&) const = default;
};
std::optional<KernelBase> read_kernel_base(const std::string& proc_root);

// Why kernel functions have no names, with a remedy; nothing if they have names.
std::optional<wire::Notice> kernel_names_problem(const std::optional<KernelBase>& base, const std::string& proc_root);

struct KernelFunction {
    std::uint64_t address = 0, size = 0;
    std::string name;  // "name [module]" for functions of kernel modules
    bool operator==(const KernelFunction&) const = default;
};

// Finds the functions that contain given absolute addresses. Accepts kallsyms lines one by one in any order. Memory is
// proportional to the number of addresses.
class FunctionSearch {
public:
    explicit FunctionSearch(std::vector<std::uint64_t> addresses);
    void offer(const KallsymsEntry& entry);
    // Sorted by address, each function once. A function ends where the next symbol begins.
    [[nodiscard]] std::vector<KernelFunction> functions() const;

private:
    // Symbols seen in the gap (previous wanted address, this wanted address].
    struct Gap {
        std::uint64_t last = 0;    // highest symbol
        std::uint64_t first = 0;   // lowest symbol
        char type = 0;             // of `last`; 0: none seen
        std::string name, module;  // of `last`
    };
    std::vector<std::uint64_t> wanted_;  // sorted, distinct
    std::vector<Gap> gaps_;              // one more than wanted_: the last one is above all
};

// Finds the kernel's own functions (not those of modules) with these names, in one pass over proc_root/kallsyms: 40 to
// 60 ms. A size extends at most to the file's next symbol. Empty if addresses are hidden.
std::vector<KernelFunction> find_kernel_functions(const std::string& proc_root,
                                                  std::span<const std::string_view> names);

// One pass over proc_root/kallsyms, in pieces: on a board it takes one or two seconds, and sampling continues
// meanwhile.
class FunctionPass {
public:
    static Result<FunctionPass> begin(const std::string& proc_root, std::vector<std::uint64_t> addresses);
    // Continues reading until after `deadline_ns` (CLOCK_MONOTONIC). True: the end was reached.
    Result<bool> advance(std::uint64_t deadline_ns);
    [[nodiscard]] std::vector<KernelFunction> functions() const { return search_.functions(); }

private:
    FunctionPass(LineReader lines, FunctionSearch search, std::string path)
        : lines_(std::move(lines)), search_(std::move(search)), path_(std::move(path)) {}
    LineReader lines_;
    FunctionSearch search_;
    std::string path_;
};

}  // namespace flamewire::agent
