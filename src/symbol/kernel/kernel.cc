#include "symbol/kernel/kernel.h"

#include <charconv>
#include <cstring>
#include <limits>

#include "base/file.h"

namespace flamewire::symbol {
namespace {

// No function is this large. An address farther after the last function belongs to code that the table does not name
// (of a module or program that was loaded later).
constexpr std::uint64_t max_function_bytes = 1u << 20;

struct KernelSymbol {
    std::uint64_t address = 0;
    char type = 0;
    std::string_view name;
    std::string_view module;  // for example "ext4"; "bpf" for BPF programs; empty: the kernel image itself
};

// "ffffffff81000000 T _text", or for a module "ffffffffc0001000 t ext4_find\t[ext4]".
bool parse_line(std::string_view line, KernelSymbol& symbol) {
    const char* const end = line.data() + line.size();
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): from_chars stops at `end`, which the check does not see.
    const auto [after, error] = std::from_chars(line.data(), end, symbol.address, 16);
    if (error != std::errc() || end - after < 4 || after[0] != ' ' || after[2] != ' ') return false;
    symbol.type = after[1];
    const std::string_view rest(after + 3, static_cast<std::size_t>(end - after - 3));
    symbol.name = rest.substr(0, rest.find_first_of("\t "));
    const std::size_t open = rest.find('['), close = rest.find(']');
    if (open != std::string_view::npos && close != std::string_view::npos && close > open + 1)
        symbol.module = rest.substr(open + 1, close - open - 1);
    return !symbol.name.empty();
}

template <class Visit>
void each_symbol(std::string_view text, Visit visit) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        KernelSymbol symbol;
        if (parse_line(text.substr(0, end), symbol)) visit(symbol);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

bool is_text(char type) { return std::strchr("tTwW", type) != nullptr; }

std::string first_line(const Result<std::string>& content) {
    return content ? content->substr(0, content->find('\n')) : std::string();
}

}  // namespace

Result<SymbolTable> parse_kallsyms(std::string_view text) {
    std::uint64_t base = 0;
    each_symbol(text, [&](const KernelSymbol& symbol) {
        if (symbol.name == "_text" || (base == 0 && symbol.name == "_stext")) base = symbol.address;
    });
    if (base == 0) return fail(ErrorCode::permission, "the kernel hides its symbol addresses from this user");
    SymbolTable table;
    std::string name;
    each_symbol(text, [&](const KernelSymbol& symbol) {
        // Per-CPU offsets and, on arm64 and x86, code that is mapped elsewhere are below _text. Differences wrap, as in
        // the agent.
        if (!is_text(symbol.type)) return;
        name = symbol.name;
        if (!symbol.module.empty()) name.append(" [").append(symbol.module).append("]");
        const std::uint64_t address = symbol.address - base;
        const std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
        table.add(address, 0, address > last - max_function_bytes ? last : address + max_function_bytes, name);
    });
    table.sort();
    return table;
}

Result<SymbolTable> running_kernel_symbols(const std::string& boot_id) {
    const std::string ours = first_line(read_file("/proc/sys/kernel/random/boot_id"));
    if (boot_id.empty() || ours != boot_id)
        return fail(ErrorCode::not_found, "the recording is of another boot or machine than this one");
    const std::string text = TRY(read_file("/proc/kallsyms"));
    return parse_kallsyms(text);
}

}  // namespace flamewire::symbol
