// /proc/kallsyms without keeping it: the table has 100,000 to 300,000 lines (10 MB and more as values), an agent asks
// for a few hundred addresses. Source of the format: the kernel's kernel/kallsyms.c, s_show.
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
    char type = '?';  // as nm: t and T are code
    std::string_view name;
    std::string_view module;  // without brackets; empty: the kernel image
    [[nodiscard]] bool is_code() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
};
// Nothing when the line is none of kallsyms. Views into `line`.
std::optional<KallsymsEntry> parse_kallsyms_line(std::string_view line);

// What kernel addresses are counted from: _text, or _stext where the table has no _text (arm64, unless it has all
// symbols). They stand near the start, so only as much as needed is read. nothing: no such file or symbol. address 0:
// kptr_restrict hides addresses from us.
struct KernelBase {
    std::uint64_t address = 0;
    bool is_text = true;  // false: _stext
    bool operator==(const KernelBase&) const = default;
};
std::optional<KernelBase> read_kernel_base(const std::string& proc_root);

// Why kernel functions have no names, and what helps; nothing when they have.
std::optional<wire::Notice> kernel_names_problem(const std::optional<KernelBase>& base, const std::string& proc_root);

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

// The kernel's own functions (not those of modules) of these names, by one pass over proc_root/kallsyms: 40 to 60 ms.
// Sizes are at most those of the file's next symbol. Empty where addresses are hidden.
std::vector<KernelFunction> find_kernel_functions(const std::string& proc_root,
                                                  std::span<const std::string_view> names);

// One pass over proc_root/kallsyms, in pieces: on a board it takes a second or two, and samples go on meanwhile.
class FunctionPass {
public:
    static Result<FunctionPass> begin(const std::string& proc_root, std::vector<std::uint64_t> addresses);
    // Reads on, until after `deadline_ns` (CLOCK_MONOTONIC). True: that was the end.
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
