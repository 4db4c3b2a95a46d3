#include "agent/control/recording_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "agent/log.h"
#include "base/clock.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

std::string describe_events(const Running& running) {
    std::vector<std::string> names = running.events;
    // A hybrid CPU has each counter once per kind of core.
    if (!running.settings.samples())
        for (const CounterState& counter : running.counters)
            if (std::ranges::find(names, counter.name) == names.end()) names.push_back(counter.name);
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

std::string describe_rate(const Running& running) {
    if (running.settings.period != 0) return fmt::format("every {} events", running.settings.period);
    if (running.effective_frequency_hz != running.settings.frequency_hz)
        return fmt::format("{} Hz ({} requested)", running.effective_frequency_hz, running.settings.frequency_hz);
    return fmt::format("{} Hz", running.effective_frequency_hz);
}

void print_counters(const Recorder& recorder, const Options& options, const LaunchedCommand* command) {
    const CounterTotals totals = recorder.counter_totals();
    if (totals.sums.empty()) return;
    const Running running = recorder.running();
    std::string title = running.scope.wide ? "'" + running.target : "process id '";
    std::optional<counters::CommandTimes> times;
    if (command != nullptr && running.pids == std::vector{command->pid()}) {
        title = "'" + command_text(options.command);
        times = {command->user_ns(), command->system_ns()};
    } else {
        for (const std::uint32_t pid : running.pids)
            title += fmt::format("{}{}", pid == running.pids.front() ? "" : ",", pid);
    }
    const std::string table = counters::perf_stat_table(counters::derive(totals.sums, totals.elapsed_ns), title + "'",
                                                        totals.elapsed_ns, times);
    (void)write_all(options.prints_table() ? STDOUT_FILENO : STDERR_FILENO, as_bytes_view(table));
}

}  // namespace

std::string command_text(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

void log_start(const Running& running) {
    if (running.settings.samples())
        log("profiling {}: {}, {}, {}", running.target, describe_events(running), describe_rate(running),
            running.kernel ? "user and kernel" : "user only");
    else
        log("counting {}: {}", running.target, describe_events(running));
}

void log_change(const Running& running) {
    if (running.settings.samples())
        log("now {}: {}, {}", running.target, describe_events(running), describe_rate(running));
    else
        log("now counting {}: {}", running.target, describe_events(running));
}

void log_end(const Recorder& recorder, const Ended& ended, const Options& options,
             std::optional<std::uint64_t> file_bytes, const LaunchedCommand* command) {
    const Accounting counts = recorder.accounting();
    const bool sampled = recorder.running().settings.samples();
    const std::string size = file_bytes ? fmt::format(", {} bytes in {}", *file_bytes, options.output) : std::string();
    const std::string_view reason = ended.error ? "stopped by an error" : std::string_view(ended.reason);
    if (sampled)
        log("{}: {} samples, {} lost, {} batches{}", reason, counts.rows_samples,
            counts.samples_lost + counts.samples_dropped, counts.batches, size);
    else
        log("{}: {} batches of counters{}", reason, counts.batches, size);
    if (sampled) detail("{}", recorder.account_line());
    detail("{} ms of CPU, {} KiB resident", process_cpu_ns() / 1'000'000, ResidentMemory().bytes() / 1024);
    if (sampled && counts.rows_samples == 0 && counts.samples_lost == 0 && !ended.error)
        log_line(
            "no samples: the event was too rare for this rate (--frequency, --count), or the target used hardly any "
            "CPU");
    if (!sampled || options.verbose) print_counters(recorder, options, command);
}

}  // namespace flamewire::agent
