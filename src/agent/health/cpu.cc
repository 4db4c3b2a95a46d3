#include "agent/health/cpu.h"

#include <algorithm>
#include <string_view>

#include "agent/process/proc_text.h"

namespace flamewire::agent {
namespace {

// The "intr" line has a number for each interrupt line of the machine. Only the first, the sum, is used, so the rest
// may be cut off.
constexpr std::size_t buffer_bytes = 4096;
constexpr std::size_t max_cpus = 8192;  // NR_CPUS of the largest kernels
constexpr std::size_t idle = 3, iowait = 4;

std::optional<std::uint64_t> number_in(std::string_view& line) {
    std::string_view field = take_field(line);
    return take_number(field, 10);
}

// Old kernels have fewer columns. Missing ones are 0.
CpuTicks take_ticks(std::string_view line) {
    CpuTicks ticks{};
    for (std::uint64_t& value : ticks) value = number_in(line).value_or(0);
    return ticks;
}

struct Used {
    std::uint64_t busy = 0, total = 0;
};

std::uint64_t sum(const CpuTicks& ticks) {
    std::uint64_t total = 0;
    for (const std::uint64_t value : ticks) total += value;
    return total;
}

// Empty if the counters restarted, which can happen when a CPU goes offline and online again.
std::optional<Used> used_between(const CpuTicks& before, const CpuTicks& now) {
    if (sum(now) <= sum(before)) return std::nullopt;
    Used used;
    for (std::size_t i = 0; i < now.size(); ++i) {
        // Single columns can decrease slightly when a tickless CPU wakes up.
        const std::uint64_t more = now[i] > before[i] ? now[i] - before[i] : 0;
        used.total += more;
        if (i != idle && i != iowait) used.busy += more;
    }
    return used;
}

std::uint32_t permille(const Used& used) {
    const std::uint64_t total = std::max<std::uint64_t>(1, used.total);
    return static_cast<std::uint32_t>((used.busy * 1000 + total / 2) / total);
}

}  // namespace

KernelStat read_kernel_stat(const std::string& proc_root) {
    KernelStat stat;
    auto reader = LineReader::open(proc_root + "/stat", buffer_bytes);
    if (!reader) return stat;
    std::string_view line;
    while (reader->next(line)) {
        std::string_view key = take_field(line);
        if (key == "cpu") {
            stat.all = take_ticks(line);
        } else if (key.starts_with("cpu")) {
            key.remove_prefix(3);
            const auto cpu = take_number(key, 10);
            const bool ascending = cpu && (stat.cpus.empty() || stat.cpus.back().cpu < *cpu);
            if (ascending && *cpu < max_cpus) stat.cpus.push_back({static_cast<std::uint32_t>(*cpu), take_ticks(line)});
        } else if (key == "intr") {
            stat.interrupts = number_in(line);
        } else if (key == "ctxt") {
            stat.context_switches = number_in(line);
        } else if (key == "procs_running") {
            stat.procs_running = number_in(line);
        } else if (key == "procs_blocked") {
            stat.procs_blocked = number_in(line);
            break;  // only soft interrupts follow
        }
    }
    return stat;
}

CpuShares CpuUsage::next(const KernelStat& stat) {
    CpuShares shares;
    if (before_) {
        Used all;
        auto old = before_->cpus.begin();
        for (const CpuTimes& now : stat.cpus) {
            while (old != before_->cpus.end() && old->cpu < now.cpu) ++old;
            if (old == before_->cpus.end()) break;
            if (old->cpu != now.cpu) continue;
            const auto used = used_between(old->ticks, now.ticks);
            if (!used) continue;
            shares.cpus.push_back({now.cpu, permille(*used)});
            all.busy += used->busy;
            all.total += used->total;
        }
        // Add up the CPUs instead of using the "cpu" line: its idle time decreases when a CPU goes offline, and the
        // machine would appear busy.
        if (all.total == 0 && stat.cpus.empty() && before_->all && stat.all)
            all = used_between(*before_->all, *stat.all).value_or(Used{});
        if (all.total != 0) shares.overall_permille = permille(all);
    }
    before_ = Before{stat.all, stat.cpus};
    return shares;
}

}  // namespace flamewire::agent
