#include "agent/process/jit_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/system.h"

namespace flamewire::agent {
namespace {

// A write to a file triggers a poll, because lines of a perf map have no times. Pauses limit this: a compiler that
// warms up writes all the time. Without write events, poll_pause_ns applies. The sampler also requests a poll before
// each of its rounds.
constexpr std::uint64_t poll_pause_ns = 100'000'000, least_pause_ns = 5'000'000;
// The maximum share of a CPU for reading, and the limits of one poll: a map of hundreds of MB is read in half a minute.
constexpr std::uint64_t cpu_share = 20;
constexpr std::uint64_t min_poll_cpu_ns = 200'000, max_poll_cpu_ns = 5'000'000;
constexpr std::size_t poll_bytes = std::size_t{4} << 20;
// For the last poll of a recording, whose end waits for it.
constexpr std::uint64_t last_cpu_ns = 1'500'000'000;
constexpr std::size_t last_bytes = std::size_t{512} << 20;

// Code ranges kept for all processes together, about 90 bytes each.
constexpr std::size_t max_ranges = 131'072;
constexpr std::size_t max_processes = 64;
// Nothing is read while this many answers, or answers of this many bytes, are queued. One poll can add about as much
// again.
constexpr std::size_t max_answers = 16'384, max_answer_bytes = std::size_t{8} << 20;

bool has_room(const JitAnswers& answers) {
    return answers.answers.size() < max_answers && answers.bytes < max_answer_bytes;
}

}  // namespace

struct JitReader::Shared {
    explicit Shared(std::string root) : proc_root(std::move(root)) {}

    void run();
    void poll_once();
    [[nodiscard]] bool poll_again();
    [[nodiscard]] bool stopped();
    void wake() const { (void)!::eventfd_write(wake_fd.get(), 1); }
    void wait_for_work();
    void take_questions(const JitQuestions& asked_now, JitAnswers& found);
    bool poll(bool last, JitAnswers& found);

    const UniqueFd wake_fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    const UniqueFd writes_fd{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};  // invalid: polls by time only
    std::mutex mutex;
    std::condition_variable answered;
    JitQuestions questions;
    JitAnswers answers;
    bool started = false, stop = false, hurry = false, settled = false, poll_wanted = false;
    std::uint64_t polls_begun = 0, polls_ended = 0;
    std::uint64_t given_up_at = std::numeric_limits<std::uint64_t>::max();  // polls_ended when a wait timed out

    // Used only by the thread.
    const std::string proc_root;
    std::map<ModuleHandle, JitCode> codes;
    std::uint64_t previous_poll_ns = 0;
    bool too_many_notified = false;
};

JitReader::JitReader(std::string proc_root) : shared_(std::make_shared<Shared>(std::move(proc_root))) {}

JitReader::~JitReader() {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
    shared_->wake();
}

void JitReader::ask(JitQuestions& questions) {
    if (questions.empty()) return;
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->questions.empty()) return;
    std::swap(shared_->questions, questions);
    if (std::exchange(shared_->started, true) || System::current().deterministic()) return;
    std::thread([shared = shared_, main = System::current().constant(Constant::own_pid)] {
        // The sampling thread may have a raised priority, which is not for its children: take the main thread's.
        (void)::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, static_cast<id_t>(main)));
        shared->run();
    }).detach();
}

void JitReader::poll_now(std::uint64_t patience_ns) {
    std::unique_lock lock(shared_->mutex);
    if (!shared_->started) return;
    if (System::current().deterministic()) {
        lock.unlock();
        return shared_->poll_once();
    }
    const std::uint64_t wanted = shared_->polls_begun + 1;
    shared_->poll_wanted = true;
    shared_->wake();
    // Do not wait again for a poll that hangs in a file system.
    if (shared_->given_up_at == shared_->polls_ended) return;
    if (!shared_->answered.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                                    [&] { return shared_->polls_ended >= wanted; }))
        shared_->given_up_at = shared_->polls_ended;
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
    const auto is_settled = [this] { return shared_->settled; };
    if (System::current().deterministic()) {
        const std::uint64_t until_ns = monotonic_ns() + patience_ns;
        while (!is_settled() && monotonic_ns() < until_ns) {
            lock.unlock();
            shared_->poll_once();
            lock.lock();
        }
    } else {
        shared_->wake();
        shared_->answered.wait_for(lock, std::chrono::nanoseconds(patience_ns), is_settled);
    }
    shared_->hurry = false;
    shared_->settled = false;
}

void JitReader::Shared::poll_once() {
    bool last = false, room = false;
    JitQuestions asked_now;
    {
        const std::lock_guard lock(mutex);
        last = hurry && !settled;
        asked_now = std::exchange(questions, {});
        poll_wanted = false;
        ++polls_begun;
        room = has_room(answers);
    }
    JitAnswers found;
    take_questions(asked_now, found);
    const bool done = room && poll(last, found);
    for (const JitAnswer& answer : found.answers) found.bytes += bytes_of(*answer.body);
    const std::lock_guard lock(mutex);
    answers.bytes += found.bytes;
    // Append to answers that were not yet taken, so that the caller waiting for this poll receives them.
    std::ranges::move(found.answers, std::back_inserter(answers.answers));
    std::ranges::move(found.notices, std::back_inserter(answers.notices));
    if (done) answers.known_until_ns = previous_poll_ns;
    if (last && done && questions.empty()) settled = true;
    ++polls_ended;
    answered.notify_all();
}

bool JitReader::Shared::poll_again() {
    const std::lock_guard lock(mutex);
    return poll_wanted || (hurry && !settled && has_room(answers));
}

bool JitReader::Shared::stopped() {
    const std::lock_guard lock(mutex);
    return stop;
}

void JitReader::Shared::run() {
    while (!stopped()) {
        poll_once();
        if (!stopped() && !poll_again()) wait_for_work();
    }
}

// Waits until there is a request, a file is written, or the last poll was long ago.
void JitReader::Shared::wait_for_work() {
    const std::uint64_t begin_ns = monotonic_ns();
    bool written = false;
    for (;;) {
        const std::uint64_t until_ns = begin_ns + (written ? least_pause_ns : poll_pause_ns);
        const std::uint64_t now_ns = monotonic_ns();
        if (now_ns >= until_ns) break;
        std::array<pollfd, 2> fds{{{wake_fd.get(), POLLIN, 0}, {written ? -1 : writes_fd.get(), POLLIN, 0}}};
        const int ms = static_cast<int>((until_ns - now_ns + 999'999) / 1'000'000);
        if (::poll(fds.data(), fds.size(), ms) <= 0 || fds[0].revents != 0) break;
        written = true;
    }
    eventfd_t ignored = 0;
    (void)!::eventfd_read(wake_fd.get(), &ignored);
    std::array<char, 4096> events;
    while (::read(writes_fd.get(), events.data(), events.size()) > 0) {
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
        else if (!std::exchange(too_many_notified, true))
            found.notices.push_back({"jit-names-full",
                                     "More than 64 processes run code that they compiled themselves: the code of the "
                                     "others has no names",
                                     ""});
    }
    for (const JitRequest& want : asked_now.wants)
        if (const auto code = codes.find(want.module); code != codes.end())
            code->second.want(want.address, want.time_ns);
    for (const ModuleHandle module : asked_now.often_unnamed)
        if (const auto code = codes.find(module); code != codes.end()) code->second.often_unnamed();
}

// True if nothing is left to read.
bool JitReader::Shared::poll(bool last, JitAnswers& found) {
    PollTimes times{previous_poll_ns, monotonic_ns(), realtime_ns()};
    const std::uint64_t cpu_ns =
        std::clamp((times.now_ns - previous_poll_ns) / cpu_share, min_poll_cpu_ns, max_poll_cpu_ns);
    previous_poll_ns = times.now_ns;
    JitBudget budget{last ? last_bytes : poll_bytes, 0, thread_cpu_ns() + (last ? last_cpu_ns : cpu_ns), 0, last};
    std::size_t held = 0;
    for (const auto& [module, code] : codes) held += code.ranges();
    if (!System::current().deterministic())
        for (auto& [module, code] : codes) code.watch(writes_fd.get());
    bool done = true;
    for (auto entry = codes.begin(); entry != codes.end();) {
        JitCode& code = entry->second;
        const std::size_t own = code.ranges();
        // A process that produces answers without end must not block those of the others.
        budget.answer_bytes = max_answer_bytes / codes.size();
        budget.ranges = max_ranges - std::min(held - own, max_ranges);
        code.poll(times, budget, found.answers, found.notices);
        held = held - own + code.ranges();
        done &= code.up_to_date();
        entry = code.over() ? codes.erase(entry) : std::next(entry);
    }
    return done;
}

}  // namespace flamewire::agent
