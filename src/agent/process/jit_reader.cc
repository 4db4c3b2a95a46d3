#include "agent/process/jit_reader.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace flamewire::agent {
namespace {

// Files are looked at this often by ourselves; the sampler asks for a look before each of its rounds.
constexpr std::chrono::milliseconds look_pause{100};
// The share of a CPU that reading takes at most, and the limits of one look: a map of 100s of MB is read in half a minute.
constexpr std::uint64_t cpu_share = 20;
constexpr std::uint64_t least_look_cpu_ns = 200'000, most_look_cpu_ns = 5'000'000;
// Nobody waits for looks that take longer.
constexpr std::uint64_t quick_look_ns = 2'000'000;
constexpr std::size_t look_bytes = std::size_t{4} << 20;
// The last look of a recording, whose end waits for it.
constexpr std::uint64_t last_cpu_ns = 1'500'000'000;
constexpr std::size_t last_bytes = std::size_t{512} << 20;

// Ranges of code that are kept of all processes, some 90 bytes each.
constexpr std::size_t max_ranges = 131'072;
constexpr std::size_t max_processes = 64;
// Nothing is read while so many answers wait to be taken.
constexpr std::size_t max_answers = 16'384;

std::uint64_t thread_cpu_ns() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace

struct JitReader::Shared {
    explicit Shared(std::string root) : proc_root(std::move(root)) {}

    void run();
    void take_questions(const JitQuestions& asked_now, JitAnswers& found);
    bool look(bool last, JitAnswers& found);

    std::mutex mutex;
    std::condition_variable asked, answered;
    JitQuestions questions;
    JitAnswers answers;
    bool started = false, stop = false, hurry = false, settled = false, look_wanted = false;
    bool quick = true;  // the last look was
    std::uint64_t looks_begun = 0, looks_ended = 0;

    // Of the thread.
    const std::string proc_root;
    std::map<ModuleHandle, JitCode> codes;
    std::uint64_t previous_look_ns = 0;
    bool too_many_said = false;
};

JitReader::JitReader(std::string proc_root) : shared_(std::make_shared<Shared>(std::move(proc_root))) {}

JitReader::~JitReader() {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
    shared_->asked.notify_all();
}

void JitReader::ask(JitQuestions& questions) {
    if (questions.empty()) return;
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->questions.empty()) return;
    std::swap(shared_->questions, questions);
    if (!std::exchange(shared_->started, true)) std::thread([shared = shared_] { shared->run(); }).detach();
}

void JitReader::look_now(std::uint64_t patience_ns) {
    std::unique_lock lock(shared_->mutex);
    if (!shared_->started) return;
    const std::uint64_t wanted = shared_->looks_begun + 1;
    shared_->look_wanted = true;
    shared_->asked.notify_all();
    // One that hangs in a file system is not waited for again.
    if (!shared_->quick || shared_->looks_begun != shared_->looks_ended) return;
    shared_->answered.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                               [&] { return shared_->looks_ended >= wanted; });
}

JitAnswers JitReader::take() {
    const std::lock_guard lock(shared_->mutex);
    return std::exchange(shared_->answers, {});
}

void JitReader::settle(std::uint64_t patience_ns) {
    std::unique_lock lock(shared_->mutex);
    if (!shared_->started) return;
    shared_->hurry = true;
    shared_->settled = false;
    shared_->asked.notify_all();
    shared_->answered.wait_for(lock, std::chrono::nanoseconds(patience_ns), [this] { return shared_->settled; });
    shared_->hurry = false;
    shared_->settled = false;
}

void JitReader::Shared::run() {
    JitAnswers found;
    std::unique_lock lock(mutex);
    while (!stop) {
        const bool last = hurry && !settled;
        const JitQuestions asked_now = std::exchange(questions, {});
        look_wanted = false;
        ++looks_begun;
        lock.unlock();
        const std::uint64_t began_ns = monotonic_ns();
        take_questions(asked_now, found);
        const bool done = found.answers.size() < max_answers && look(last, found);
        const std::uint64_t took_ns = monotonic_ns() - began_ns;
        lock.lock();
        quick = took_ns < quick_look_ns;
        const bool told = answers.empty();
        if (told) std::swap(answers, found);
        if (last && done && told && questions.empty()) settled = true;
        ++looks_ended;
        answered.notify_all();
        if (last && !settled && told) continue;
        asked.wait_for(lock, look_pause, [this] { return stop || look_wanted || (hurry && !settled); });
    }
}

void JitReader::Shared::take_questions(const JitQuestions& asked_now, JitAnswers& found) {
    for (const JitProcess& process : asked_now.processes) {
        const auto known = codes.find(process.module);
        if (process.pid == 0)
            codes.erase(process.module);
        else if (known != codes.end())
            known->second.found_jitdump(process.jitdump);
        else if (codes.size() < max_processes)
            codes.try_emplace(process.module, proc_root, process);
        else if (!std::exchange(too_many_said, true))
            found.notices.push_back(
                {"jit-names-full",
                 "More than 64 processes run code that they compiled themselves: that of the others "
                 "has no names",
                 ""});
    }
    for (const JitWant& want : asked_now.wants)
        if (const auto code = codes.find(want.module); code != codes.end())
            code->second.want(want.address, want.time_ns);
}

// True when there is nothing left to read.
bool JitReader::Shared::look(bool last, JitAnswers& found) {
    LookTimes times{previous_look_ns, monotonic_ns(), realtime_ns()};
    const std::uint64_t cpu_ns =
        std::clamp((times.now_ns - previous_look_ns) / cpu_share, least_look_cpu_ns, most_look_cpu_ns);
    previous_look_ns = times.now_ns;
    JitBudget budget{last ? last_bytes : look_bytes, thread_cpu_ns() + (last ? last_cpu_ns : cpu_ns), 0, last};
    std::size_t held = 0;
    for (const auto& [module, code] : codes) held += code.ranges();
    bool done = true;
    for (auto entry = codes.begin(); entry != codes.end();) {
        JitCode& code = entry->second;
        const std::size_t own = code.ranges();
        budget.ranges = max_ranges - std::min(held - own, max_ranges);
        code.look(times, budget, found.answers, found.notices);
        held = held - own + code.ranges();
        done &= code.up_to_date();
        entry = code.over() ? codes.erase(entry) : std::next(entry);
    }
    return done;
}

}  // namespace flamewire::agent
