#include "agent/probes/tracefs_events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include "agent/log.h"
#include "agent/process/process_info.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

constexpr std::string_view group_prefix = "flamewire_";
// The kernel's limit for names of groups and events is 63 bytes.
constexpr std::size_t max_hint_bytes = 40;
// Every line of these files has less than 1 KiB; a machine with more probes than this is not cleaned up.
constexpr std::size_t max_list_bytes = std::size_t{4} << 20;
constexpr std::size_t max_help_bytes = std::size_t{64} << 10;
// An event stays in use for a moment after its last descriptor was closed.
constexpr int remove_attempts = 50;
constexpr std::chrono::milliseconds remove_pause{20};

constexpr std::array<std::string_view, 2> lists{"/uprobe_events", "/kprobe_events"};

std::string list_path(const std::string& folder, const ProbeDefinition& probe) {
    return fmt::format("{}{}", folder, lists[probe.path.empty() ? 1 : 0]);
}

std::string place_of(const ProbeDefinition& probe) {
    if (!probe.path.empty()) return fmt::format("{}:{:#x}", probe.path, probe.offset);
    return probe.offset == 0 ? probe.name : fmt::format("{}+{:#x}", probe.name, probe.offset);
}

// One write is one command. O_APPEND is essential: opening the file for writing without it removes all events.
int command(const std::string& list, std::string_view text) {
    const UniqueFd file(::open(list.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file) return errno;
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    return written == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

int remove_event(const std::string& list, std::string_view group, std::string_view event) {
    return command(list, fmt::format("-:{}/{}\n", group, event));
}

// The kernel writes the reason for its refusal as "trace_uprobe: error: TEXT" into error_log.
std::string kernel_reason(const std::string& folder, const std::string& group) {
    const auto log = read_file(folder + "/error_log", std::size_t{1} << 16);
    if (!log) return {};
    constexpr std::string_view mark = "error: ";
    // The line before "Command: p:GROUP/EVENT …". Other programs write into the same log.
    const std::size_t at = log->rfind(mark, log->rfind(group));
    if (at == std::string::npos) return {};
    const std::size_t begin = at + mark.size();
    return log->substr(begin, log->find('\n', begin) - begin);
}

std::unexpected<Error> refused(const std::string& folder, const std::string& group, const ProbeDefinition& probe,
                               int error) {
    const bool kernel = probe.path.empty();
    const std::string list = list_path(folder, probe);
    if (error == ENOENT && !file_status(list))
        return fail(ErrorCode::unsupported, kernel ? "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)"
                                                   : "this kernel has no uprobes (CONFIG_UPROBE_EVENTS) in " + folder);
    if (error == ENOENT && kernel)
        return fail(ErrorCode::not_found, fmt::format("this kernel has no function {} that can be probed", probe.name));
    if (error == EACCES || error == EPERM)
        return fail(ErrorCode::permission, fmt::format("this user may not create probes: {} cannot be written. Run the "
                                                       "agent as root",
                                                       list));
    // EADDRNOTAVAIL: several functions have the name.
    std::string reason = error == EINVAL || error == EADDRNOTAVAIL ? kernel_reason(folder, group) : std::string();
    if (reason.empty()) reason = std::strerror(error);
    if (error == EINVAL && probe.reference_counter != 0) reason += "; USDT probes with a semaphore need Linux 4.20";
    return std::unexpected(Error{
        ErrorCode::invalid, error,
        kernel ? fmt::format("the kernel refuses a probe on its function {}: {}", place_of(probe), reason)
               : fmt::format("the kernel refuses the probe {} at offset {:#x}: {}", probe.name, probe.offset, reason)});
}

// A number in hexadecimal before `_` or the end; advances `text` past it.
std::optional<std::uint64_t> take_hex(std::string_view& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return value;
    if (!text.starts_with('_')) return std::nullopt;
    text.remove_prefix(1);
    return value;
}

TracefsOwner own_identity() {
    TracefsOwner owner;
    if (const auto names = file_status("/proc/self/ns/pid")) owner.pid_namespace = names->inode;
    owner.pid = static_cast<std::uint32_t>(::getpid());
    if (const auto stat = read_stat("/proc", owner.pid)) owner.start_ticks = stat->start_ticks;
    return owner;
}

// Of functions such as ns::Class::method, other characters become underscores.
std::string event_name(std::string_view hint, std::size_t number) {
    std::string name = fmt::format("p{}_", number);
    for (const char c : hint.substr(0, max_hint_bytes)) {
        const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        name += allowed ? c : '_';
    }
    return name;
}

}  // namespace

std::string tracefs_group(const TracefsOwner& owner, std::uint64_t number) {
    return fmt::format("{}{:x}_{:x}_{:x}_{:x}", group_prefix, owner.pid_namespace, owner.pid, owner.start_ticks,
                       number);
}

std::optional<TracefsOwner> tracefs_owner(std::string_view group) {
    if (!group.starts_with(group_prefix)) return std::nullopt;
    group.remove_prefix(group_prefix.size());
    std::array<std::uint64_t, 4> numbers{};
    for (std::uint64_t& number : numbers) {
        const auto value = take_hex(group);
        if (!value) return std::nullopt;
        number = *value;
    }
    if (!group.empty()) return std::nullopt;
    return TracefsOwner{numbers[0], static_cast<std::uint32_t>(numbers[1]), numbers[2]};
}

TracefsEvents::TracefsEvents(std::string folder) : folder_(std::move(folder)) {
    static std::atomic<std::uint64_t> groups{0};
    group_ = tracefs_group(own_identity(), ++groups);
}

Result<std::string> TracefsEvents::add(const ProbeDefinition& probe) {
    std::string name = event_name(probe.name, events_.size());
    std::string text = fmt::format("{}:{}/{} {}", probe.returns ? 'r' : 'p', group_, name, place_of(probe));
    if (probe.reference_counter != 0) text += fmt::format("({:#x})", probe.reference_counter);
    for (const ProbeArgument& argument : probe.arguments) text += fmt::format(" {}={}", argument.name, argument.fetch);
    text += '\n';
    std::string list = list_path(folder_, probe);
    if (const int error = command(list, text); error != 0) return refused(folder_, group_, probe, error);
    events_.push_back({std::move(list), name});
    return name;
}

bool TracefsEvents::knows_kernel_arguments() const {
    const auto help = read_file(folder_ + "/README", max_help_bytes);
    return help && help->find("$arg<N>") != std::string::npos;
}

TracefsEvents::~TracefsEvents() {
    int attempts = remove_attempts;
    for (const auto& [list, event] : events_) {
        int error = remove_event(list, group_, event);
        for (; error == EBUSY && attempts > 0; --attempts) {
            std::this_thread::sleep_for(remove_pause);
            error = remove_event(list, group_, event);
        }
        if (error != 0)
            log("cannot remove the probe {}/{}: {}. Try: echo '-:{}/{}' >> {}", group_, event, std::strerror(error),
                group_, event, list);
    }
}

namespace {

std::size_t remove_stale_of(const std::string& path, const TracefsOwner& own) {
    const auto list = read_file(path, max_list_bytes);
    if (!list) return 0;
    std::size_t removed = 0;
    // Lines look like "p:GROUP/EVENT PATH:OFFSET ARGUMENTS"; "r:…" and "r256:…" are return probes.
    for (std::string_view rest = *list; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const std::size_t colon = line.find(':'), slash = line.find('/'), space = line.find(' ');
        if (colon == std::string_view::npos || slash == std::string_view::npos || slash > space || slash < colon)
            continue;
        const std::string_view group = line.substr(colon + 1, slash - colon - 1);
        const auto owner = tracefs_owner(group);
        if (!owner || owner->pid_namespace != own.pid_namespace) continue;
        const auto stat = read_stat("/proc", owner->pid);
        if (stat && stat->start_ticks == owner->start_ticks) continue;
        if (remove_event(path, group, line.substr(slash + 1, space - slash - 1)) == 0) ++removed;
    }
    return removed;
}

}  // namespace

std::size_t remove_stale_events(const std::string& folder) {
    const TracefsOwner own = own_identity();
    std::size_t removed = 0;
    for (const std::string_view list : lists) removed += remove_stale_of(fmt::format("{}{}", folder, list), own);
    return removed;
}

}  // namespace flamewire::agent
