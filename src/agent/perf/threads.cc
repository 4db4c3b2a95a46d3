#include "agent/perf/threads.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/file.h"
#include "base/system.h"

namespace flamewire::agent {

std::vector<std::uint32_t> list_threads(std::uint32_t pid) {
    std::vector<std::uint32_t> tids;
    std::vector<std::string> names;
    if (System::current().list(fmt::format("/proc/{}/task", pid), SIZE_MAX, names) != 0) return tids;
    for (const std::string_view name : names) {
        std::uint32_t tid = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tid);
        if (error == std::errc{} && end == name.data() + name.size()) tids.push_back(tid);
    }
    return tids;
}

std::optional<TaskStat> read_task_stat(std::uint32_t pid, std::uint32_t tid) {
    const auto text =
        read_file(tid == 0 ? fmt::format("/proc/{}/stat", pid) : fmt::format("/proc/{}/task/{}/stat", pid, tid), 4096);
    if (!text) return std::nullopt;
    // pid (comm) state …: comm may contain anything, so count from the last parenthesis. Fields of proc(5): 3 state, 14
    // to 17 CPU time of the process and of its children, 20 threads, 22 start.
    const std::size_t paren = text->rfind(')');
    if (paren == std::string::npos || paren + 2 >= text->size()) return std::nullopt;
    std::string_view rest = std::string_view(*text).substr(paren + 2);
    TaskStat stat;
    stat.state = rest.front();
    for (int field = 3; !rest.empty() && field <= 22; ++field) {
        const std::size_t space = rest.find(' ');
        const std::string_view word = rest.substr(0, space);
        std::uint64_t number = 0;
        std::from_chars(word.data(), word.data() + word.size(), number);
        if (field == 14 || field == 16) stat.user_ticks += number;
        if (field == 15 || field == 17) stat.system_ticks += number;
        if (field == 20) stat.threads = static_cast<std::uint32_t>(number);
        if (field == 22) stat.start_ticks = number;
        rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    }
    return stat;
}

}  // namespace flamewire::agent
