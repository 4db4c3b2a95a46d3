#include "agent/process/allowed_processes.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "agent/process/process_list.h"
#include "base/wildcard.h"

namespace flamewire::agent {

Result<AllowedProcesses> AllowedProcesses::of(AllowedWords words, const std::string& passwd_path) {
    AllowedProcesses allowed;
    if (!words.users.empty()) {
        const auto names = parse_passwd(read_head(passwd_path, std::size_t{1} << 20).value_or(""));
        for (const std::string& user : words.users) {
            std::string_view digits = user;
            const auto number = take_number(digits, 10);
            const bool is_number = number && digits.empty() && *number <= 0xffff'ffff;
            const auto known = std::ranges::find_if(names, [&](const auto& entry) { return entry.second == user; });
            if (!is_number && known == names.end())
                return fail(ErrorCode::not_found,
                            fmt::format("--allow-user: {} has no user {} (a number works, too)", passwd_path, user));
            allowed.uids_.push_back(is_number ? static_cast<std::uint32_t>(*number) : known->first);
        }
    }
    allowed.words_ = std::move(words);
    return allowed;
}

std::optional<Error> AllowedProcesses::refusal(std::uint32_t pid, const std::string& proc_root) const {
    if (words_.all()) return std::nullopt;
    auto stat = read_stat(proc_root, pid);
    if (!stat && stat.error().code == ErrorCode::not_found) return std::nullopt;
    if (!stat) return std::move(stat).error();
    std::string command = read_exe(proc_root, pid);
    command.erase(0, command.rfind('/') + 1);
    if (command.empty()) command = stat->comm;
    const auto is_it = [&](const std::string& pattern) { return matches_wildcards(pattern, command); };
    const char* list = nullptr;
    if (!words_.pids.empty() && std::ranges::find(words_.pids, pid) == words_.pids.end())
        list = "--allow-pid";
    else if (!uids_.empty() && std::ranges::find(uids_, read_status(proc_root, pid).effective_uid) == uids_.end())
        list = "--allow-user";
    else if (!words_.commands.empty() && std::ranges::none_of(words_.commands, is_it))
        list = "--allow-command";
    if (list == nullptr) return std::nullopt;
    return Error{ErrorCode::permission, 0,
                 fmt::format("process {} ({}) is not among those that this agent may profile: {} limits them", pid,
                             command, list)};
}

std::vector<std::uint32_t> AllowedProcesses::among(std::vector<std::uint32_t> pids) const {
    std::erase_if(pids, [&](std::uint32_t pid) { return refusal(pid).has_value(); });
    return pids;
}

}  // namespace flamewire::agent
