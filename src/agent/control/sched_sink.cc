#include "agent/control/sched_sink.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

}  // namespace

// A thread keeps its line in later epochs.
std::uint32_t SchedSink::line_of(std::uint32_t tid, const std::string& name) {
    std::size_t at = 0;
    while (at < lines_.size() && (lines_[at].tid != tid || lines_[at].name != name)) ++at;
    if (at == lines_.size()) {
        lines_.emplace_back();
        lines_.back().name = name;
        lines_.back().tid = tid;
    }
    return static_cast<std::uint32_t>(at);
}

Result<bool> SchedSink::push(wire::Batch& batch, const wire::EventPeriods&) {
    if (batch.epoch != epoch_) {
        epoch_ = batch.epoch;
        strings_.resize(1);
        line_of_.resize(1);
    }
    for (std::string& text : batch.strings) strings_.push_back(std::move(text));
    for (const wire::Thread& thread : batch.threads) line_of_.push_back(line_of(thread.tid, strings_[thread.comm]));
    for (const wire::Lifecycle& change : batch.lifecycle)
        if (change.comm != 0 && change.thread != 0) lines_[line_of_[change.thread]].name = strings_[change.comm];
    for (const wire::ThreadTimes& times : batch.thread_times) lines_[line_of_[times.thread]].times.add(times);
    const std::uint64_t now = monotonic_ns();
    if (!batch.end && (!live_ || now < next_ns_)) return true;
    next_ns_ = now + second_ns;
    print(batch.end.has_value());
    return true;
}

void SchedSink::print(bool last) {
    // Sort by time awake, descending. This is cheap: few lines, once per second.
    std::vector<const counters::SchedLine*> lines;
    const auto awake = [](const counters::SchedLine* line) {
        return line->times.state_ns[0] + line->times.state_ns[1];
    };
    for (const counters::SchedLine& line : lines_) {
        if (line.times.length_ns() == 0) continue;
        std::size_t at = lines.size();
        lines.push_back(&line);
        for (; at > 0 && awake(lines[at - 1]) < awake(&line); --at) lines[at] = lines[at - 1];
        lines[at] = &line;
    }
    std::size_t most = 0;
    std::string text;
    winsize size{};  // stays 0 if standard output is not a terminal
    (void)::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    if (live_) {
        if (!last) most = size.ws_row < 9 ? 3 : size.ws_row - 6U;
        text = "\x1b[H\x1b[J";
    }
    text += counters::sched_table(lines, most, size.ws_col);
    (void)write_all(STDOUT_FILENO, as_bytes_view(text));
}

}  // namespace flamewire::agent
