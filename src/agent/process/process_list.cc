#include "agent/process/process_list.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <unordered_map>

#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "base/clock.h"
#include "base/system.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_processes = 65'536;

std::uint32_t own_pid() { return static_cast<std::uint32_t>(System::current().constant(Constant::own_pid)); }

// A process that can be profiled: not a kernel thread, not a zombie, not the agent.
bool is_candidate(std::uint32_t pid, const ProcStat& stat) {
    return pid != own_pid() && !stat.kernel_thread() && stat.state != 'Z' && stat.state != 'X';
}

std::string user_name(std::uint32_t uid, const std::unordered_map<std::uint32_t, std::string>& names) {
    const auto found = names.find(uid);
    return found == names.end() ? std::to_string(uid) : found->second;
}

struct Usage {
    std::uint32_t pid = 0;
    std::uint64_t start_ticks = 0, ticks = 0;
    std::string comm;
    double cpu_percent = 0;
};

std::vector<Usage> scan_all(const std::string& proc_root) {
    std::vector<Usage> all;
    for (const std::uint32_t pid : list_pids(proc_root)) {
        auto stat = read_stat(proc_root, pid);
        if (!stat || !is_candidate(pid, *stat)) continue;
        all.push_back({pid, stat->start_ticks, stat->user_ticks + stat->system_ticks, std::move(stat->comm), 0});
    }
    return all;
}

}  // namespace

std::vector<std::uint32_t> list_pids(const std::string& proc_root) { return list_numbers(proc_root, max_processes); }

std::unordered_map<std::uint32_t, std::string> parse_passwd(std::string_view text) {
    std::unordered_map<std::uint32_t, std::string> names;
    while (!text.empty()) {
        const std::size_t newline = text.find('\n');
        std::string_view line = text.substr(0, newline);
        text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
        // name:password:uid:…
        const std::size_t name_end = line.find(':');
        const std::size_t uid_begin = name_end == std::string_view::npos ? name_end : line.find(':', name_end + 1);
        if (uid_begin == std::string_view::npos || name_end == 0) continue;
        std::string_view rest = line.substr(uid_begin + 1);
        const auto uid = take_number(rest, 10);
        if (uid && rest.starts_with(':')) names.emplace(static_cast<std::uint32_t>(*uid), line.substr(0, name_end));
    }
    return names;
}

std::vector<ProcessEntry> list_processes(std::chrono::milliseconds interval, std::size_t limit,
                                         const std::string& proc_root, const std::string& passwd_path) {
    std::unordered_map<std::uint32_t, Usage> before;
    const std::uint64_t began = monotonic_ns();
    for (Usage& usage : scan_all(proc_root)) before.emplace(usage.pid, std::move(usage));
    std::this_thread::sleep_for(interval);
    std::vector<Usage> now = scan_all(proc_root);
    const double elapsed_ns = static_cast<double>(std::max<std::uint64_t>(1, monotonic_ns() - began));
    for (Usage& usage : now) {
        const auto old = before.find(usage.pid);
        const bool same = old != before.end() && old->second.start_ticks == usage.start_ticks;
        const std::uint64_t used = same && usage.ticks > old->second.ticks ? usage.ticks - old->second.ticks : 0;
        usage.cpu_percent = 100.0 * static_cast<double>(ticks_to_ns(used)) / elapsed_ns;
    }
    std::sort(now.begin(), now.end(), [](const Usage& a, const Usage& b) {
        return a.cpu_percent != b.cpu_percent ? a.cpu_percent > b.cpu_percent : a.pid < b.pid;
    });
    if (now.size() > limit) now.resize(limit);

    const auto passwd = read_head(passwd_path, std::size_t{1} << 20);
    const auto names = passwd ? parse_passwd(*passwd) : std::unordered_map<std::uint32_t, std::string>{};
    std::vector<ProcessEntry> entries;
    for (Usage& usage : now) {
        const ProcStatus status = read_status(proc_root, usage.pid);
        entries.push_back({usage.pid, status.namespace_pid, user_name(status.effective_uid, names),
                           std::move(usage.comm), read_command_line(proc_root, usage.pid),
                           read_cgroup(proc_root, usage.pid).container_id, usage.cpu_percent});
    }
    return entries;
}

Result<ProcessIdentity> identify_process(std::uint32_t pid, const std::string& proc_root) {
    auto stat = read_stat(proc_root, pid);
    if (!stat && (stat.error().errno_value == EMFILE || stat.error().errno_value == ENFILE)) return ProcessIdentity{};
    if (!stat) return fail(ErrorCode::not_found, "process " + std::to_string(pid) + " not found");
    return ProcessIdentity{std::move(stat->comm), read_command_line(proc_root, pid)};
}

bool has_name(std::uint32_t pid, std::span<const std::string> names, const std::string& proc_root) {
    const auto stat = read_stat(proc_root, pid);
    if (!stat || !is_candidate(pid, *stat)) return false;
    const auto is = [names](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
    if (is(stat->comm)) return true;
    // The kernel cuts a comm at 15 bytes and the program may change it; neither applies to the file's name.
    const std::string exe = read_exe(proc_root, pid);
    return !exe.empty() && is(std::string_view(exe).substr(exe.rfind('/') + 1));
}

}  // namespace flamewire::agent
