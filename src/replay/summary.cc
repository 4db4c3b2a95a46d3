#include "replay/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace flamewire::replay {
namespace {

using namespace wire;

// The tables of one epoch. Entry 0 of each is reserved.
struct Tables {
    std::vector<std::string> strings{1};
    std::vector<Module> modules{1};
    std::vector<Location> locations{1};
    std::vector<StackNode> stacks{1};
    std::vector<Process> processes{1};
    std::vector<Thread> threads{1};
    std::vector<Event> events{1};

    void add(const Batch& batch) {
        const auto append = [](auto& table, const auto& entries) {
            table.insert(table.end(), entries.begin(), entries.end());
        };
        append(strings, batch.strings);
        append(modules, batch.modules);
        append(locations, batch.locations);
        append(stacks, batch.stacks);
        append(processes, batch.processes);
        append(threads, batch.threads);
        append(events, batch.events);
    }

    [[nodiscard]] std::string frame(const Location& location) const {
        const Module& module = modules.at(location.module);
        const std::string& path = strings.at(module.path);
        std::string text = location.module == 0 ? "?" : path.substr(path.rfind('/') + 1);
        if (location.name != 0)
            text += "!" + strings.at(location.name);
        else
            // The address of the call, which is in the caller even if the call is its last instruction.
            text += fmt::format("+{:x}", location.code_address().lookup());
        if (location.line != 0) text += fmt::format(" (line {})", location.line);
        if ((location.flags & location_flag::joined) != 0) text += " joined";
        return text;
    }

    [[nodiscard]] std::string chain(Id stack) const {
        std::vector<Id> frames;
        for (Id node = stack; node != 0; node = stacks.at(node).parent) frames.push_back(stacks.at(node).location);
        std::string text;
        for (auto location = frames.rbegin(); location != frames.rend();) {
            const auto next = std::find_if(location, frames.rend(), [&](Id other) { return other != *location; });
            text += ";" + frame(locations.at(*location));
            if (next - location > 1) text += fmt::format(" *{}", next - location);
            location = next;
        }
        return text;
    }

    [[nodiscard]] std::string thread_name(Id thread) const { return strings.at(threads.at(thread).comm); }
};

class Summary {
public:
    void add(const Batch& batch) {
        if (batch.epoch != epoch_) tables_ = {};
        epoch_ = batch.epoch;
        tables_.add(batch);
        for (const Row& row : batch.rows) {
            Sum& sum = chains_[fmt::format("{};{}{}", tables_.strings.at(tables_.events.at(row.event).name),
                                           tables_.thread_name(row.thread), tables_.chain(row.stack))];
            sum.count += row.count;
            sum.weight += row.weight;
            if (row.stack != 0) add_span(batch, row);
        }
        for (const ThreadTimes& times : batch.thread_times) {
            ThreadTimes& sum =
                times_[fmt::format("{} ({})", tables_.thread_name(times.thread), tables_.threads.at(times.thread).tid)];
            sum.add(times);
        }
        for (const Loss& loss : batch.losses) losses_[static_cast<unsigned>(loss.reason)] += loss.count;
        for (const ProcessUnwind& unwind : batch.unwinds) unwinds_[tables_.processes.at(unwind.process).pid] = unwind;
        for (const Symbol& symbol : batch.symbols)
            ++names_[fmt::format("{} = {}", tables_.frame({.module = symbol.module, .address = symbol.address}),
                                 tables_.strings.at(symbol.name))];
        for (const CounterReading& reading : batch.counters)
            for (const CounterValue& value : reading.values)
                if (value.thread == 0 && value.cpu_plus_1 == 0)
                    counters_[tables_.strings.at(value.name)] += value.value;
        if (batch.end) end_ = batch.end->reason;
    }

    [[nodiscard]] std::vector<std::string> lines() const {
        std::vector<std::string> lines;
        lines.reserve(chains_.size() + times_.size() + names_.size());
        for (const auto& [chain, sum] : chains_) lines.push_back(fmt::format("{} {} {}", chain, sum.count, sum.weight));
        for (const auto& [thread, times] : times_)
            lines.push_back(
                fmt::format("thread {}: run {} runnable {} blocked {} io-wait {} preempted {} slept {} io-waits {}",
                            thread, times.state_ns[0], times.state_ns[1], times.state_ns[2], times.state_ns[3],
                            times.preempted, times.slept, times.io_waits));
        for (const auto& [reason, count] : losses_) lines.push_back(fmt::format("loss {}: {}", reason, count));
        for (const auto& [pid, unwind] : unwinds_)
            lines.push_back(
                fmt::format("stacks of {}: mode {}, {} samples, {} whole, {} joined, {} truncated, {} open, {} stopped",
                            pid, static_cast<unsigned>(unwind.mode), unwind.samples, unwind.whole, unwind.joined,
                            unwind.truncated, unwind.open_end, unwind.stopped));
        for (const auto& [frame, span] : spans_)
            lines.push_back(fmt::format("span {}: {} {}", frame, span.first_ns, span.end_ns));
        for (const auto& [name, times] : names_) lines.push_back(fmt::format("name {}", name));
        for (const auto& [name, value] : counters_) lines.push_back(fmt::format("counter {}: {}", name, value));
        lines.push_back("end: " + end_);
        return lines;
    }

private:
    struct Sum {
        std::uint64_t count = 0, weight = 0;
    };
    struct Span {
        std::uint64_t first_ns = UINT64_MAX, end_ns = 0;
    };

    // Records when JIT code ran, because its addresses can later belong to other code.
    void add_span(const Batch& batch, const Row& row) {
        const Location& leaf = tables_.locations.at(tables_.stacks.at(row.stack).location);
        if (tables_.modules.at(leaf.module).kind != ModuleKind::jit) return;
        Span& span = spans_[tables_.frame(leaf)];
        span.first_ns = std::min(span.first_ns, row.bucket * batch.bucket_ns);
        span.end_ns = std::max(span.end_ns, (row.bucket + 1) * batch.bucket_ns);
    }

    std::uint32_t epoch_ = 0;
    Tables tables_;
    std::map<std::string, Sum> chains_;
    std::map<std::string, ThreadTimes> times_;
    std::map<std::string, Span> spans_;
    std::map<unsigned, std::uint64_t> losses_;
    std::map<std::uint32_t, ProcessUnwind> unwinds_;
    std::map<std::string, unsigned> names_;
    std::map<std::string, std::uint64_t> counters_;
    std::string end_;
};

}  // namespace

std::vector<std::string> summarize(const std::vector<Batch>& batches) {
    Summary summary;
    for (const Batch& batch : batches) summary.add(batch);
    return summary.lines();
}

}  // namespace flamewire::replay
