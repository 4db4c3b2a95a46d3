#include "agent/process/jit_code.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_wants = 16'384;
// Between searches for a missing file; doubled each time.
constexpr std::uint64_t shortest_pause_ns = 200'000'000, longest_pause_ns = 1'000'000'000;
// Search time before a missing map causes a notice.
constexpr std::uint64_t notice_after_ns = 1'000'000'000;
// Allows for differences between the clocks of files and processes.
constexpr std::uint64_t start_tolerance_ns = 2'000'000'000;
constexpr std::size_t piece_bytes = 256 * 1024;
// Samples are read within a second, so replaced code is kept for longer than that.
constexpr std::uint64_t keep_replaced_ns = 3'000'000'000;
constexpr std::size_t max_replaced = 4'096;
constexpr std::size_t max_short_name_bytes = 256;

// A file last written that long ago does not belong to a process that began at `start_ns`: an earlier process had the
// same pid. Ages above the time since boot come from a wall clock that was changed, and are ignored.
bool is_older(std::int64_t age_ns, std::uint64_t boottime_ns, std::uint64_t start_ns) {
    if (age_ns < 0 || static_cast<std::uint64_t>(age_ns) > boottime_ns) return false;
    return boottime_ns - static_cast<std::uint64_t>(age_ns) + start_tolerance_ns < start_ns;
}

// Matched by prefix. Chromium's sandbox does not allow renderers to write the file.
struct Remedy {
    std::string_view runtime, remedy;
};
constexpr Remedy remedies[] = {
    {"node", "start it with node --perf-basic-prof"},
    {"python", "start it with python3 -X perf (Python 3.12 or later)"},
    {"chrom", "start it with --no-sandbox --js-flags=--perf-basic-prof, for trusted pages only"},
    {"php", "start it with php -d opcache.jit_debug=16"},
    {"luajit", "build it with -DLUAJIT_USE_PERFTOOLS"},
    {"ruby", "start it with ruby --yjit-perf (Ruby 3.3 or later)"},
    {"dotnet", "start it with DOTNET_PerfMapEnabled=1 in its environment"},
    {"qemu-", "start it with -perfmap (QEMU 8.0 or later)"},
};

bool same_file(const std::string& a, const std::string& b) {
    const auto one = file_status(a), other = file_status(b);
    return one && other && one->device == other->device && one->inode == other->inode;
}

}  // namespace

bool JitBudget::spent() const { return bytes == 0 || answer_bytes == 0 || thread_cpu_ns() >= deadline_ns; }

std::size_t bytes_of(const JitBody& body) {
    std::size_t bytes =
        sizeof(body) + body.name.size() + body.rows.size() * sizeof(JitBody::Row) + body.rules.memory_bytes();
    for (const std::string& file : body.files) bytes += sizeof(std::string) + file.size();
    return bytes;
}

bool may_name(std::uint64_t sampled_ns, std::uint64_t from_ns) {
    return from_ns == 0 || from_ns <= sampled_ns + jit_writer_delay_ns;
}

std::string jit_remedy(const JitProcess& process) {
    std::string_view runtime = process.exe.empty() ? process.program : process.exe;
    runtime.remove_prefix(runtime.rfind('/') + 1);
    if (runtime.starts_with("java"))
        return fmt::format(
            "run jcmd {} Compiler.perfmap (JDK 17 or later), or start it with -XX:+UnlockDiagnosticVMOptions "
            "-XX:+DumpPerfMapAtExit; for whole stacks start it with -XX:+PreserveFramePointer",
            process.pid);
    for (const auto& [name, remedy] : remedies)
        if (runtime.starts_with(name)) return std::string(remedy);
    return fmt::format("enable perf maps in its runtime, if it supports them (/tmp/perf-{}.map)", process.ns_pid);
}

JitCode::JitCode(std::string proc_root, JitProcess process)
    : proc_root_(std::move(proc_root)), process_(std::move(process)) {}

void JitCode::want(std::uint64_t address, std::uint64_t time_ns) {
    if (wants_.size() >= max_wants) wants_.clear();  // JitNames has dropped them too
    wants_.try_emplace(address, time_ns);
    up_to_date_ = false;
}

void JitCode::found_jitdump(std::string path) {
    if (path == process_.jitdump) return;
    process_.jitdump = std::move(path);
    next_search_ns_ = 0;
    if (std::holds_alternative<PerfMapFile>(file_)) restart();
    file_ = std::monostate();
    device_ = inode_ = 0;
}

void JitCode::watch(int inotify) const {
    int fd = -1;
    if (const auto* map = std::get_if<PerfMapFile>(&file_)) fd = map->fd();
    if (const auto* dump = std::get_if<JitdumpFile>(&file_)) fd = dump->fd();
    if (inotify >= 0 && fd >= 0)
        (void)::inotify_add_watch(inotify, fmt::format("/proc/self/fd/{}", fd).c_str(), IN_MODIFY | IN_ONESHOT);
}

void JitCode::poll(const PollTimes& times, JitBudget& budget, std::vector<JitAnswer>& answers,
                   std::vector<wire::Notice>& notices) {
    now_ns_ = times.now_ns;
    answer_bytes_ = budget.answer_bytes;
    if (times.now_ns >= next_search_ns_ || budget.last) find_file(times, notices);
    if (!std::holds_alternative<std::monostate>(file_)) read_on(times, budget, answers, notices);
    if (std::holds_alternative<std::monostate>(file_)) up_to_date_ = true;
}

// Finds the file, or another one that took its name.
void JitCode::find_file(const PollTimes& times, std::vector<wire::Notice>& notices) {
    if (first_search_ns_ == 0) first_search_ns_ = times.now_ns;
    const std::string root = proc_path(proc_root_, process_.pid, "root");
    if (file_status(root)) {
        host_root_ = same_file(root, "/");
        user_ = read_status(proc_root_, process_.pid).effective_uid;
        user_known_ = true;
        gone_since_ns_ = 0;
    } else if (gone_since_ns_ == 0) {
        gone_since_ns_ = times.now_ns;
        if (!user_known_) {  // gone before the first poll
            host_root_ = process_.ns_pid == 0;
            user_ = static_cast<std::uint32_t>(System::current().constant(Constant::effective_user));
            user_known_ = true;
        }
    }
    const bool had_none = std::holds_alternative<std::monostate>(file_);
    bool found = !process_.jitdump.empty() && take_file(process_.jitdump, true, times.realtime_ns);
    if (!found) {
        const std::uint32_t pid = process_.ns_pid != 0 ? process_.ns_pid : process_.pid;
        found = take_file(fmt::format("/tmp/perf-{}.map", pid), false, times.realtime_ns);
    }
    if (found && had_none) search_pause_ns_ = 0;
    search_pause_ns_ = std::clamp(search_pause_ns_ * 2, shortest_pause_ns, longest_pause_ns);
    next_search_ns_ = times.now_ns + search_pause_ns_;
    if (found || notice_given_ || !often_unnamed_ || times.now_ns < first_search_ns_ + notice_after_ns) return;
    notice_given_ = true;
    notices.push_back(no_names());
}

// True if the file at `path` is the one being read.
bool JitCode::take_file(const std::string& path, bool jitdump, std::int64_t realtime_ns) {
    remedy_.clear();
    System& system = System::current();
    constexpr int flags = O_NONBLOCK | O_NOCTTY;
    int opened = system.open_in_root(proc_path(proc_root_, process_.pid, "root"), path, flags);
    if (opened == -ENOENT && host_root_) opened = system.open_in_root("/", path, flags);
    UniqueFd file(opened);
    FileStatus facts;
    if (opened >= 0) opened = system.status_of(opened, facts);
    if (opened < 0) {
        const int error = -opened;
        why_not_ = error == ENOENT ? fmt::format("there is no {}", path)
                                   : fail_errno(path + " cannot be opened", error).error().message;
        if (error == EACCES || error == EPERM) remedy_ = "run flamewire-agent as the same user or as root";
        return false;
    }
    if (!facts.regular) {
        why_not_ = fmt::format("{} is not a regular file", path);
        return false;
    }
    // Any user can create this file. A user can also bind-mount a file there that only root can read, and its content
    // must not reach the profile.
    const bool is_own = user_known_ && facts.user == user_;
    const bool is_private = facts.user == 0 && !facts.others_may_read;
    if (!is_own && (facts.user != 0 || is_private)) {
        why_not_ = fmt::format("{} is ignored, because it belongs to {}", path,
                               is_private ? "root and the program cannot read it" : "another user than the program");
        remedy_ = fmt::format("rm {} and start the program again", path);
        return false;
    }
    const std::int64_t age_ns = realtime_ns - facts.modified_ns;
    if (is_older(age_ns, boottime_ns(), process_.start_time_ns)) {
        why_not_ = fmt::format("{} is older than the program, so it belongs to another one", path);
        return false;
    }
    const bool same = facts.device == device_ && facts.inode == inode_ && path == file_path_;
    if (same && !std::holds_alternative<std::monostate>(file_)) return true;
    if (!std::holds_alternative<std::monostate>(file_)) restart();
    device_ = facts.device;
    inode_ = facts.inode;
    file_path_ = path;
    if (jitdump)
        file_.emplace<JitdumpFile>(std::move(file));
    else
        file_.emplace<PerfMapFile>(std::move(file));
    return true;
}

// Earlier answers stay valid until the file, read again from its beginning, differs.
void JitCode::restart() {
    code_.clear();
    replaced_.clear();  // refers to records of the old content
    restarted_ns_ = now_ns_;
}

void JitCode::read_on(const PollTimes& times, JitBudget& budget, std::vector<JitAnswer>& answers,
                      std::vector<wire::Notice>& notices) {
    up_to_date_ = false;
    std::vector<JitEntry> entries;
    JitProgress progress = JitProgress::more;
    while (progress == JitProgress::more && !budget.spent()) {
        const std::size_t piece = std::min(piece_bytes, budget.bytes);
        budget.bytes -= piece;
        entries.clear();
        if (auto* map = std::get_if<PerfMapFile>(&file_)) progress = map->advance(piece, times, entries);
        if (auto* dump = std::get_if<JitdumpFile>(&file_)) progress = dump->advance(piece, times, entries);
        for (const JitEntry& entry : entries) {
            const bool full = code_.size() >= budget.ranges && code_.find(entry.start) == nullptr;
            if (!full) {
                add(entry, answers);
            } else if (!std::exchange(full_notice_given_, true)) {
                notices.push_back({"jit-names-full",
                                   fmt::format("{} names more code than the agent keeps: some of the code that {} "
                                               "(process {}) compiled has no names",
                                               file_path_, process_.program, process_.pid),
                                   ""});
            }
        }
        budget.answer_bytes = answer_bytes_;
    }
    if (progress == JitProgress::rewritten || progress == JitProgress::damaged) {
        if (progress == JitProgress::damaged && !std::exchange(notice_given_, true))
            notices.push_back({"jit-names-missing",
                               fmt::format("{} is not in the format of its name: the code that {} (process {}) "
                                           "compiled has no names",
                                           file_path_, process_.program, process_.pid),
                               jit_remedy(process_)});
        restart();
        device_ = inode_ = 0;
        if (progress == JitProgress::damaged) process_.jitdump.clear();
        if (progress == JitProgress::rewritten) next_search_ns_ = 0;
        file_ = std::monostate();
        return;
    }
    if (progress != JitProgress::at_end) return;
    if (const std::uint64_t restarted_ns = std::exchange(restarted_ns_, 0); restarted_ns != 0)
        compare_given(restarted_ns, answers);
    answer_wants(answers);
    up_to_date_ = answer_bytes_ != 0;
    budget.answer_bytes = answer_bytes_;
    if (answered_in_short_ && !std::exchange(full_notice_given_, true))
        notices.push_back({"jit-names-full",
                           fmt::format("{} has more lines and longer names than the agent keeps: some of "
                                       "the code that {} (process {}) compiled has short names without lines",
                                       file_path_, process_.program, process_.pid),
                           ""});
}

void JitCode::add(JitEntry entry, std::vector<JitAnswer>& answers) {
    Place place{entry.record, entry.lines, entry.unwinding, 0, 0, entry.from_ns};
    if (entry.moved_from != 0) {
        const auto* old = code_.find(entry.moved_from);
        if (old == nullptr) return;
        place = old->second.value;
        place.moved_by += entry.start - entry.moved_from;
        place.from_ns = entry.from_ns;
    }
    bool known = false;
    for (auto want = wants_.lower_bound(entry.start); want != wants_.end() && want->first < entry.end;) {
        // An earlier sample belongs to the code that was here before, or to code that has no name.
        const auto* old = want->second < entry.from_ns ? code_.find(want->first) : nullptr;
        const bool named =
            old != nullptr && answer(old->first, old->second.end, old->second.value, 0, entry.from_ns, answers);
        const bool nameless = !named && !may_name(want->second, entry.from_ns);
        known |= nameless;
        want = named || nameless ? wants_.erase(want) : std::next(want);
    }
    given_.for_each_in(entry.start, entry.end, [&](const auto& range) { known |= !range.second.value.same_as(place); });
    keep_replaced(entry);
    code_.lay(entry.start, entry.end, place);
    // While a file is read again, its content is compared at the end.
    if (known && restarted_ns_ == 0)
        answer(entry.start, entry.end, place, entry.from_ns, JitAnswer().until_ns, answers);
}

void JitCode::keep_replaced(const JitEntry& entry) {
    while (!replaced_.empty() &&
           (replaced_.size() >= max_replaced || replaced_.front().until_ns + keep_replaced_ns < now_ns_))
        replaced_.pop_front();
    if (entry.from_ns == 0 || entry.from_ns + keep_replaced_ns < now_ns_) return;
    code_.for_each_in(entry.start, entry.end, [&](const auto& range) {
        if (replaced_.size() < max_replaced)
            replaced_.push_back({range.first, range.second.end, range.second.value, entry.from_ns});
    });
}

const JitCode::Replaced* JitCode::replaced_at(std::uint64_t address, std::uint64_t time_ns) const {
    const auto found = std::ranges::find_if(replaced_, [&](const Replaced& old) {
        return address >= old.start && address < old.end && time_ns >= old.place.from_ns && time_ns < old.until_ns;
    });
    return found == replaced_.end() ? nullptr : &*found;
}

// Answers for samples of functions that were replaced before their addresses were asked for.
void JitCode::answer_wants_of_replaced(std::vector<JitAnswer>& answers) {
    for (auto want = wants_.begin(); want != wants_.end();) {
        const auto* range = code_.find(want->first);
        const bool is_earlier = range != nullptr && want->second < range->second.value.from_ns;
        const Replaced* old = is_earlier && answer_bytes_ != 0 ? replaced_at(want->first, want->second) : nullptr;
        if (old == nullptr || !answer(old->start, old->end, old->place, 0, old->until_ns, answers)) {
            ++want;
            continue;
        }
        const Place& place = range->second.value;
        answer(range->first, range->second.end, place, place.from_ns, JitAnswer().until_ns, answers);
        want = wants_.erase(want);
    }
}

void JitCode::answer_wants(std::vector<JitAnswer>& answers) {
    // Must come first: an answer about the current code names all earlier samples at its addresses that have no name
    // yet.
    answer_wants_of_replaced(answers);
    // Addresses for which there is no space left stay in wants_ until the next poll.
    for (auto want = wants_.begin(); want != wants_.end() && answer_bytes_ != 0;) {
        const auto* range = code_.find(want->first);
        if (range == nullptr) {
            ++want;
            continue;
        }
        const auto* given = given_.find(want->first);
        const bool same = given != nullptr && given->second.value.same_as(range->second.value) &&
                          given->second.end == range->second.end;
        if (!same) answer(range->first, range->second.end, range->second.value, 0, JitAnswer().until_ns, answers);
        want = wants_.erase(want);
    }
}

// Compares earlier answers with the file after it was rewritten.
void JitCode::compare_given(std::uint64_t from_ns, std::vector<JitAnswer>& answers) {
    const RangeMap<Place> given = std::exchange(given_, {});
    for (const auto& [start, range] : given) {
        const auto* now = code_.find(start);
        if (now == nullptr) continue;
        Place place = now->second.value;
        const auto body = body_of(name_of(place));
        place.name_hash = body ? std::hash<std::string_view>()(body->name) : 0;
        if (place.name_hash == range.value.name_hash)
            given_.lay(start, std::min(range.end, now->second.end), place);
        else
            answer(now->first, now->second.end, place, from_ns, JitAnswer().until_ns, answers);
    }
}

// The same place without lines and unwinding information.
JitCode::Place JitCode::name_of(Place place) {
    place.lines = place.unwinding = 0;
    return place;
}

std::optional<JitBody> JitCode::body_of(const Place& place) const {
    if (const auto* map = std::get_if<PerfMapFile>(&file_)) return map->body_of(place.record);
    if (const auto* dump = std::get_if<JitdumpFile>(&file_))
        return dump->body_of(place.record, place.lines, place.unwinding);
    return std::nullopt;
}

bool JitCode::answer(std::uint64_t start, std::uint64_t end, Place place, std::uint64_t from_ns, std::uint64_t until_ns,
                     std::vector<JitAnswer>& answers) {
    // Code can be replaced any number of times in one poll, and each answer may contain a megabyte of lines.
    const bool in_short = answer_bytes_ == 0;
    auto body = body_of(in_short ? name_of(place) : place);
    if (!body) return false;
    body->start += place.moved_by;
    place.name_hash = std::hash<std::string_view>()(body->name);
    given_.lay(start, end, place);
    if (in_short) {
        answered_in_short_ = true;
        body->name.resize(std::min(body->name.size(), max_short_name_bytes));
    }
    answer_bytes_ -= std::min(answer_bytes_, bytes_of(*body));
    answers.push_back(
        {process_.module, start, end, from_ns, until_ns, std::make_shared<const JitBody>(*std::move(body))});
    return true;
}

wire::Notice JitCode::no_names() const {
    return {"jit-names-missing",
            fmt::format("{} (process {}) runs code that it compiled itself, and {}: that code has no names",
                        process_.program, process_.pid, why_not_),
            remedy_.empty() ? jit_remedy(process_) : remedy_};
}

}  // namespace flamewire::agent
