#include "agent/process/process_info.h"

#include <algorithm>

#include "agent/process/maps.h"
#include "agent/process/proc_text.h"
#include "base/cgroup_path.h"
#include "base/system.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_stat_bytes = 4096;
constexpr std::size_t max_status_bytes = 16 * 1024;
constexpr std::size_t max_cgroup_bytes = 16 * 1024;
constexpr std::size_t max_command_line_bytes = 1024;

std::uint32_t to_u32(std::optional<std::uint64_t> value) { return static_cast<std::uint32_t>(value.value_or(0)); }

// Removes the next line from `text`.
std::string_view take_line(std::string_view& text) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    return line;
}

void strip_newline(std::string& text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
}

}  // namespace

std::optional<ProcStat> parse_stat(std::string_view text) {
    // A comm may contain anything, even ") R 1", so it ends at the last parenthesis.
    const std::size_t open = text.find('(');
    const std::size_t close = text.rfind(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
    ProcStat stat;
    stat.comm = std::string(text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
    const std::string_view state = take_field(text);
    if (state.size() != 1) return std::nullopt;
    stat.state = state.front();
    // Fields as proc(5) numbers them; 3 is the state.
    for (int number = 4; number <= 22; ++number) {
        std::string_view field = take_field(text);
        if (field.empty()) return std::nullopt;
        const auto value = take_number(field, 10);  // some are negative, but none of those used here
        if (number == 4) stat.parent_pid = to_u32(value);
        if (number == 9) stat.flags = value.value_or(0);
        if (number == 10) stat.minor_faults = value.value_or(0);
        if (number == 12) stat.major_faults = value.value_or(0);
        if (number == 14) stat.user_ticks = value.value_or(0);
        if (number == 15) stat.system_ticks = value.value_or(0);
        if (number == 20) stat.threads = value.value_or(0);
        if (number == 22) stat.start_ticks = value.value_or(0);
    }
    return stat;
}

ProcStatus parse_status(std::string_view text) {
    ProcStatus status;
    while (!text.empty()) {
        std::string_view line = take_line(text);
        const std::string_view key = take_field(line);
        if (key == "Uid:") {
            take_field(line);  // real
            std::string_view effective = take_field(line);
            status.effective_uid = to_u32(take_number(effective, 10));
        } else if (key == "NStgid:") {
            take_field(line);  // in the agent's namespace
            for (std::string_view inner = take_field(line); !inner.empty(); inner = take_field(line))
                status.namespace_pid = to_u32(take_number(inner, 10));
            break;  // comes after Uid
        }
    }
    return status;
}

Cgroup parse_cgroup(std::string_view text) {
    Cgroup cgroup;
    while (!text.empty()) {
        std::string_view line = take_line(text);
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const bool unified = line.starts_with("0::");
        const std::string_view path = line.substr(second + 1);
        std::string id = parse_cgroup_path(path).container_id;
        // If both versions are mounted, the runtime may use either.
        const bool more_specific =
            id.empty() ? cgroup.container_id.empty() && unified && path != "/" : cgroup.container_id.empty() || unified;
        if (cgroup.path.size() <= 1 || more_specific) {
            cgroup.path = std::string(path);
            cgroup.container_id = std::move(id);
        }
    }
    return cgroup;
}

std::string command_line_text(std::string_view raw) {
    while (!raw.empty() && raw.back() == '\0') raw.remove_suffix(1);
    std::string text(raw.substr(0, max_command_line_bytes));
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    return text;
}

std::uint64_t ticks_to_ns(std::uint64_t ticks) {
    const std::uint64_t per_second = System::current().constant(Constant::ticks_per_second);
    return ticks / per_second * 1'000'000'000 + ticks % per_second * 1'000'000'000 / per_second;
}

Result<ProcStat> read_stat(const std::string& proc_root, std::uint32_t pid) {
    const std::string text = TRY(read_record(proc_path(proc_root, pid, "stat"), max_stat_bytes));
    auto stat = parse_stat(text);
    if (!stat) return fail(ErrorCode::invalid, proc_path(proc_root, pid, "stat") + " is not in the format of proc(5)");
    return *std::move(stat);
}

ProcStatus read_status(const std::string& proc_root, std::uint32_t pid) {
    const auto text = read_record(proc_path(proc_root, pid, "status"), max_status_bytes);
    return text ? parse_status(*text) : ProcStatus{};
}

Cgroup read_cgroup(const std::string& proc_root, std::uint32_t pid) {
    const auto text = read_record(proc_path(proc_root, pid, "cgroup"), max_cgroup_bytes);
    return text ? parse_cgroup(*text) : Cgroup{};
}

std::string read_command_line(const std::string& proc_root, std::uint32_t pid) {
    const auto raw = read_record(proc_path(proc_root, pid, "cmdline"), max_command_line_bytes);
    return raw ? command_line_text(*raw) : std::string();
}

std::string read_exe(const std::string& proc_root, std::uint32_t pid) {
    auto exe = read_link(proc_path(proc_root, pid, "exe"));
    if (!exe) return {};
    strip_deleted(*exe);
    return *std::move(exe);
}

std::string read_thread_comm(const std::string& proc_root, std::uint32_t pid, std::uint32_t tid) {
    auto comm = read_record(proc_path(proc_root, pid, "task/" + std::to_string(tid) + "/comm"), 64);
    if (!comm) return {};
    strip_newline(*comm);
    return *std::move(comm);
}

ProcessInfo read_process_info(const std::string& proc_root, std::uint32_t pid, const ProcStat& stat) {
    ProcessInfo info;
    info.pid = pid;
    info.ns_pid = read_status(proc_root, pid).namespace_pid;
    info.parent_pid = stat.parent_pid;
    info.start_time_ns = ticks_to_ns(stat.start_ticks);
    info.comm = stat.comm;
    info.exe = read_exe(proc_root, pid);
    info.command_line = read_command_line(proc_root, pid);
    Cgroup cgroup = read_cgroup(proc_root, pid);
    info.cgroup = std::move(cgroup.path);
    info.container_id = std::move(cgroup.container_id);
    return info;
}

}  // namespace flamewire::agent
