#include "agent/process/allowed_processes.h"

#include <algorithm>

#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "agent/process/process_list.h"

namespace flamewire::agent {
namespace {

std::string joined(std::string_view option, const std::vector<std::string>& words) {
    std::string text(option);
    char separator = ' ';
    for (const std::string& word : words) (text += std::exchange(separator, ',')) += word;
    return text;
}

// `*` is any text, `?` any character. Ours: fnmatch brings 40 KB of wide characters into a static program.
bool fits(std::string_view pattern, std::string_view text) {
    std::size_t star = std::string_view::npos, tried = 0, at = 0, from = 0;
    while (at < text.size()) {
        if (from < pattern.size() && pattern[from] == '*') {
            star = from++;
            tried = at;
        } else if (from < pattern.size() && (pattern[from] == '?' || pattern[from] == text[at])) {
            ++from;
            ++at;
        } else if (star != std::string_view::npos) {
            from = star + 1;  // the last star takes one more
            at = ++tried;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', from) == std::string_view::npos;
}

}  // namespace

Result<AllowedProcesses> AllowedProcesses::of(AllowedWords words, const std::string& passwd_path) {
    AllowedProcesses allowed;
    if (!words.users.empty()) {
        const auto names = parse_passwd(read_head(passwd_path, std::size_t{1} << 20).value_or(""));
        for (const std::string& user : words.users) {
            std::string_view digits = user;
            const auto number = take_number(digits, 10);
            if (number && digits.empty() && *number <= 0xffff'ffff) {
                allowed.uids_.push_back(static_cast<std::uint32_t>(*number));
                continue;
            }
            const auto known = std::ranges::find_if(names, [&](const auto& entry) { return entry.second == user; });
            if (known == names.end())
                return fail(ErrorCode::not_found,
                            "--allow-user: " + passwd_path + " has no user " + user + " (a number works, too)");
            allowed.uids_.push_back(known->first);
        }
    }
    allowed.words_ = std::move(words);
    return allowed;
}

std::optional<Error> AllowedProcesses::refusal(std::uint32_t pid, const std::string& proc_root) const {
    if (words_.all()) return std::nullopt;
    const auto stat = read_stat(proc_root, pid);
    if (!stat) return std::nullopt;
    const std::string exe = read_exe(proc_root, pid);
    const std::string command = exe.empty() ? stat->comm : exe.substr(exe.rfind('/') + 1);
    const auto refuse = [&](const std::string& option) {
        return Error{ErrorCode::permission, 0,
                     "process " + std::to_string(pid) + " (" + command +
                         ") is not among those that this agent may profile: it was started with " + option};
    };
    if (!words_.pids.empty() && std::ranges::find(words_.pids, pid) == words_.pids.end()) {
        std::vector<std::string> pids;
        for (const std::uint32_t allowed : words_.pids) pids.push_back(std::to_string(allowed));
        return refuse(joined("--allow-pid", pids));
    }
    if (!uids_.empty() && std::ranges::find(uids_, read_status(proc_root, pid).effective_uid) == uids_.end())
        return refuse(joined("--allow-user", words_.users));
    const auto is_it = [&](const std::string& pattern) { return fits(pattern, command); };
    if (!words_.commands.empty() && std::ranges::none_of(words_.commands, is_it))
        return refuse(joined("--allow-command", words_.commands));
    return std::nullopt;
}

}  // namespace flamewire::agent
