#include "agent/health/process.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "agent/health/roots.h"
#include "agent/process/proc_text.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t buffer_bytes = 4096;
constexpr long proc_magic = 0x9fa0;  // PROC_SUPER_MAGIC, linux/magic.h
// Kernels before 6.2 must list each open file, which takes longer than a round allows for tens of thousands.
constexpr std::size_t max_counted_files = 4096;

std::optional<std::uint64_t> count_files(const std::string& proc_root, std::uint32_t pid) {
    const std::string path = proc_path(proc_root, pid, "fd");
    struct stat info{};
    struct statfs system{};
    // Since Linux 6.2, the size of the directory is its number of entries.
    if (::stat(path.c_str(), &info) == 0 && info.st_size > 0 && ::statfs(path.c_str(), &system) == 0 &&
        system.f_type == proc_magic)
        return static_cast<std::uint64_t>(info.st_size);
    DIR* const directory = ::opendir(path.c_str());
    if (directory == nullptr) return std::nullopt;
    std::uint64_t count = 0;
    while (const dirent* entry = ::readdir(directory)) {
        if (entry->d_name[0] != '.') ++count;
        if (count > max_counted_files) break;
    }
    ::closedir(directory);
    if (count > max_counted_files) return std::nullopt;
    return count;
}

// Reads the numbers of `keys` from a file of "Key: number" lines.
template <std::size_t count>
void read_keys(const std::string& path,
               const std::array<std::pair<std::string_view, std::optional<std::uint64_t>*>, count>& keys) {
    auto reader = LineReader::open(path, buffer_bytes);
    if (!reader) return;
    std::string_view line;
    while (reader->next(line)) {
        const std::string_view key = take_field(line);
        for (const auto& [name, value] : keys) {
            if (key != name) continue;
            std::string_view field = take_field(line);
            *value = take_number(field, 10);
        }
    }
}

void complete(ProcessHealth& process, const std::string& proc_root) {
    read_keys<4>(proc_path(proc_root, process.pid, "status"),
                 {{{"VmSize:", &process.vsize_kb},
                   {"VmRSS:", &process.rss_kb},
                   {"voluntary_ctxt_switches:", &process.voluntary_switches},
                   {"nonvoluntary_ctxt_switches:", &process.involuntary_switches}}});
    process.fds = count_files(proc_root, process.pid);
    process.oom_score = read_number(proc_path(proc_root, process.pid, "oom_score"));
}

}  // namespace

// A different start time means that the pid was reused.
const ProcessWatch::Before* ProcessWatch::before(std::uint32_t pid, const ProcStat& stat) const {
    for (const Before& entry : before_)
        if (entry.pid == pid) return entry.start_ticks == stat.start_ticks ? &entry : nullptr;
    return nullptr;
}

std::vector<ProcessHealth> ProcessWatch::read(const std::string& proc_root, std::span<const std::uint32_t> pids,
                                              std::size_t most, std::uint64_t now_ns) {
    struct Candidate {
        ProcessHealth process;
        std::uint64_t used_ticks = 0;
    };
    std::vector<Candidate> living;
    std::vector<Before> seen;
    for (const std::uint32_t pid : pids) {
        auto stat = read_stat(proc_root, pid);
        if (!stat) continue;
        const std::uint64_t ticks = stat->user_ticks + stat->system_ticks;
        Candidate candidate;
        candidate.used_ticks = ticks;
        const Before* const old = before(pid, *stat);
        if (old != nullptr && now_ns > old->at_ns) {
            candidate.used_ticks = ticks - std::min(ticks, old->ticks);
            // Tenths of a percent. An hour of 1,000 CPUs is 3.6e8 ticks, so nothing overflows.
            const std::uint64_t elapsed_us = std::max<std::uint64_t>(1, (now_ns - old->at_ns) / 1000);
            candidate.process.cpu_permille = static_cast<std::uint32_t>(
                (candidate.used_ticks * 1'000'000'000 / ticks_per_second_ + elapsed_us / 2) / elapsed_us);
        }
        seen.push_back({pid, stat->start_ticks, ticks, now_ns});
        candidate.process.pid = pid;
        candidate.process.stat = *std::move(stat);
        living.push_back(std::move(candidate));
    }
    before_ = std::move(seen);
    std::vector<ProcessHealth> found;
    while (found.size() < most && !living.empty()) {
        const auto busiest = std::max_element(living.begin(), living.end(), [](const Candidate& a, const Candidate& b) {
            return a.used_ticks < b.used_ticks;
        });
        complete(busiest->process, proc_root);
        found.push_back(std::move(busiest->process));
        living.erase(busiest);
    }
    return found;
}

std::optional<ProcessIo> read_process_io(const std::string& proc_root, std::uint32_t pid) {
    std::optional<std::uint64_t> read, written, reads, writes;
    read_keys<4>(proc_path(proc_root, pid, "io"),
                 {{{"read_bytes:", &read}, {"write_bytes:", &written}, {"syscr:", &reads}, {"syscw:", &writes}}});
    if (!read || !written || !reads || !writes) return std::nullopt;
    return ProcessIo{pid, *read, *written, *reads, *writes};
}

std::vector<ThreadTicks> read_thread_ticks(const std::string& proc_root, std::uint32_t pid, std::size_t most) {
    std::vector<ThreadTicks> threads;
    const std::string path = proc_path(proc_root, pid, "task");
    DIR* const directory = ::opendir(path.c_str());
    if (directory == nullptr) return threads;
    while (threads.size() < most) {
        const dirent* const entry = ::readdir(directory);
        if (entry == nullptr) break;
        std::string_view name = entry->d_name;
        const auto tid = take_number(name, 10);
        if (!tid || !name.empty()) continue;
        auto stat = read_stat(path, static_cast<std::uint32_t>(*tid));
        if (!stat) continue;  // it exited in the meantime
        threads.push_back({static_cast<std::uint32_t>(*tid), std::move(stat->comm), stat->state,
                           stat->user_ticks + stat->system_ticks});
    }
    ::closedir(directory);
    return threads;
}

}  // namespace flamewire::agent
