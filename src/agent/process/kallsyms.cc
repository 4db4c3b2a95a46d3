#include "agent/process/kallsyms.h"

#include <algorithm>

#include "base/clock.h"

namespace flamewire::agent {
namespace {

// No kernel function is larger. Farther addresses have no name (memory of an unloaded module, a trampoline).
constexpr std::uint64_t max_function_bytes = 1 << 20;

// For aliases at one address: prefers a global name, then the one with fewer leading underscores.
bool better_alias(char type, std::string_view name, char old_type, std::string_view old_name) {
    const bool global = type == 'T';
    if (global != (old_type == 'T')) return global;
    return name.find_first_not_of('_') < old_name.find_first_not_of('_');
}

// Reads the first character of a sysctl, which is sufficient here.
char read_level(const std::string& proc_root, std::string_view name, char if_unknown) {
    const auto text = read_head(proc_root + "/sys/kernel/" + std::string(name), 16);
    return text && !text->empty() ? text->front() : if_unknown;
}

// kernel/kallsyms.c, kallsyms_show_value(). kptr_restrict 0: processes with CAP_SYSLOG can read addresses, and at
// perf_event_paranoid 1 and below all can. 1: processes with CAP_SYSLOG. 2: none.
wire::Notice hidden_names(const std::string& proc_root) {
    const char restricted = read_level(proc_root, "kptr_restrict", '1');
    const char paranoid = read_level(proc_root, "perf_event_paranoid", '2');
    const bool by_paranoid = paranoid > '1';  // the '-' of "-1" is less than '1'
    std::string reason = "kernel.kptr_restrict is ", remedy = "sysctl -w kernel.kptr_restrict=0, or ";
    if (restricted == '0' && by_paranoid) {
        reason = "kernel.perf_event_paranoid is ";
        remedy = "sysctl -w kernel.perf_event_paranoid=1, or ";
    } else if (restricted > '1') {
        remedy = "sysctl -w kernel.kptr_restrict=1, and run the agent as root, or ";
    } else if (by_paranoid) {
        remedy = "sysctl -w kernel.kptr_restrict=0 kernel.perf_event_paranoid=1, or ";
    }
    reason += restricted == '0' && by_paranoid ? paranoid : restricted;
    return {"kernel-names-hidden", "Kernel names are hidden (" + reason + "): kernel frames are shown as raw addresses",
            remedy + "setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep flamewire-agent"};
}

}  // namespace

std::optional<KallsymsEntry> parse_kallsyms_line(std::string_view line) {
    KallsymsEntry entry;
    const auto address = take_number(line, 16);
    if (!address || !take_char(line, ' ') || line.empty()) return std::nullopt;
    entry.address = *address;
    entry.type = line.front();
    line.remove_prefix(1);
    entry.name = take_field(line);
    if (entry.name.empty()) return std::nullopt;
    std::string_view module = take_field(line);
    if (module.size() > 2 && module.front() == '[' && module.back() == ']')
        entry.module = module.substr(1, module.size() - 2);
    return entry;
}

std::optional<KernelBase> read_kernel_base(const std::string& proc_root) {
    // Use small reads: the kernel formats as many lines as fit.
    auto lines = LineReader::open(proc_root + "/kallsyms", 4096);
    if (!lines) return std::nullopt;
    std::optional<std::uint64_t> stext;
    for (std::string_view line; lines->next(line);) {
        const auto entry = parse_kallsyms_line(line);
        if (!entry || !entry->module.empty()) continue;
        if (entry->name == "_text") return KernelBase{entry->address, true};
        // On machines other than arm64, both have the same address. Lines are in address order.
        if (stext && entry->address > *stext) break;
        if (entry->name == "_stext") stext = entry->address;
        if (stext && *stext == 0) break;
    }
    if (!stext) return std::nullopt;
    return KernelBase{*stext, false};
}

std::optional<wire::Notice> kernel_names_problem(const std::optional<KernelBase>& base, const std::string& proc_root) {
    if (!base)
        return wire::Notice{
            "kernel-names-missing",
            "/proc/kallsyms is missing or empty (a kernel without CONFIG_KALLSYMS, or a sandbox): kernel "
            "frames are shown as raw addresses",
            {}};
    if (base->address == 0) return hidden_names(proc_root);
    return std::nullopt;
}

FunctionSearch::FunctionSearch(std::vector<std::uint64_t> addresses) : wanted_(std::move(addresses)) {
    std::sort(wanted_.begin(), wanted_.end());
    wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
    gaps_.resize(wanted_.size() + 1);
}

void FunctionSearch::offer(const KallsymsEntry& entry) {
    if (!entry.is_code()) return;
    const auto above = std::lower_bound(wanted_.begin(), wanted_.end(), entry.address);
    Gap& gap = gaps_[static_cast<std::size_t>(above - wanted_.begin())];
    const bool empty = gap.type == 0;
    if (empty || entry.address < gap.first) gap.first = entry.address;
    if (above == wanted_.end()) {  // only the end of the last function
        gap.type = 'T';
        return;
    }
    if (!empty && entry.address < gap.last) return;
    if (!empty && entry.address == gap.last && !better_alias(entry.type, entry.name, gap.type, gap.name)) return;
    gap.last = entry.address;
    gap.type = entry.type;
    gap.name.assign(entry.name);
    gap.module.assign(entry.module);
}

std::vector<KernelFunction> FunctionSearch::functions() const {
    // Address of the first symbol above the own symbol of each gap.
    std::vector<std::uint64_t> end_of(gaps_.size(), ~std::uint64_t{0});
    for (std::size_t i = gaps_.size() - 1; i-- > 0;)
        end_of[i] = gaps_[i + 1].type != 0 ? gaps_[i + 1].first : end_of[i + 1];
    std::vector<KernelFunction> found;
    std::size_t holder = gaps_.size();  // the gap whose last symbol is the nearest one below
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
        if (gaps_[i].type != 0) holder = i;
        if (holder == gaps_.size()) continue;
        const Gap& gap = gaps_[holder];
        if (wanted_[i] - gap.last >= max_function_bytes) continue;
        if (!found.empty() && found.back().address == gap.last) continue;
        const std::uint64_t size = std::min(max_function_bytes, end_of[holder] - gap.last);
        std::string name = gap.name;
        if (!gap.module.empty()) name += " [" + gap.module + "]";
        found.push_back({gap.last, size, std::move(name)});
    }
    return found;
}

std::vector<KernelFunction> find_kernel_functions(const std::string& proc_root,
                                                  std::span<const std::string_view> names) {
    std::vector<KernelFunction> found;
    auto lines = LineReader::open(proc_root + "/kallsyms", 8 * 1024);
    if (!lines) return found;
    std::uint64_t* open_end = nullptr;  // size of the last function found; the table is sorted by address
    for (std::string_view line; lines->next(line);) {
        const auto entry = parse_kallsyms_line(line);
        if (!entry || !entry->is_code() || !entry->module.empty() || entry->address == 0) continue;
        if (open_end != nullptr && entry->address > found.back().address) {
            *open_end = std::min(entry->address - found.back().address, max_function_bytes);
            open_end = nullptr;
        }
        if (std::find(names.begin(), names.end(), entry->name) == names.end()) continue;
        found.push_back({entry->address, 1, std::string(entry->name)});
        open_end = &found.back().size;
    }
    return found;
}

Result<FunctionPass> FunctionPass::begin(const std::string& proc_root, std::vector<std::uint64_t> addresses) {
    // The kernel formats the data of one read in a single step, so the buffer size bounds a piece.
    std::string path = proc_root + "/kallsyms";
    LineReader lines = TRY(LineReader::open(path, 8 * 1024));
    return FunctionPass(std::move(lines), FunctionSearch(std::move(addresses)), std::move(path));
}

Result<bool> FunctionPass::advance(std::uint64_t deadline_ns) {
    constexpr unsigned lines_per_check = 64;  // between clock checks
    unsigned count = 0;
    for (std::string_view line; lines_.next(line);) {
        if (const auto entry = parse_kallsyms_line(line)) search_.offer(*entry);
        if (++count % lines_per_check == 0 && monotonic_ns() > deadline_ns) return false;
    }
    if (lines_.failed()) return fail_errno("read " + path_, lines_.errno_value());
    return true;
}

}  // namespace flamewire::agent
