#include "recorded_day.h"

#include <fmt/format.h>

#include <utility>

namespace flamewire::bench {

namespace {

constexpr std::int64_t realtime_minus_monotonic_ns = 1'700'000'000'000'000'000;
// Intervals at which a process starts, executes another program and exits, and at which samples are lost.
constexpr std::uint64_t process_every_s = 5, loss_every_s = 600;

std::uint64_t end_ns(std::uint64_t second) { return RecordedDay::start_ns + (second + 1) * ns_per_s; }

ProgramShape shape() {
    ProgramShape shape;
    shape.functions = 2'000;
    shape.stacks = RecordedDay::stacks;
    shape.threads = RecordedDay::threads;
    shape.events = 1;
    return shape;
}

wire::Id next_id(wire::Id base, std::size_t entries) { return base + static_cast<wire::Id>(entries); }

}  // namespace

RecordedDay::RecordedDay(std::uint32_t frequency_hz) : frequency_hz_(frequency_hz), program_(shape()) {}

wire::Frame RecordedDay::frame(wire::Batch& batch) {
    batch.recording_id = recording_id();
    batch.seq = ++seq_;
    wire::learn_periods(batch, periods_);
    return wire::batch_frame(wire::encode(batch, periods_));
}

wire::Frame RecordedDay::tables() {
    wire::Batch batch = program_.tables();
    batch.recording->target = "pid 4242 (program)";
    batch.recording->pids = {4242};
    batch.recording->frequency_hz = frequency_hz_;
    batch.recording->start_ns = start_ns;
    batch.recording->cpus = 8;
    batch.monotonic_ns = start_ns;
    batch.realtime_ns = realtime_minus_monotonic_ns + static_cast<std::int64_t>(start_ns);
    const auto string = [&](std::string text) {
        batch.strings.push_back(std::move(text));
        return static_cast<wire::Id>(batch.strings.size());
    };
    first_counter_ = next_id(1, batch.strings.size());
    for (const char* name : counters) string(name);
    unit_ = string("events");
    // A name for every function.
    const std::size_t modules = batch.modules.size();
    for (std::uint64_t function = 0; function < shape().functions; ++function)
        batch.symbols.push_back({static_cast<wire::Id>(1 + function % modules), 0x1000 + function * function_bytes,
                                 function_bytes,
                                 string(fmt::format("part{}::Component{}::method_{}(int, std::string const&)",
                                                    function / 300, function / 20, function))});
    next_string_ = next_id(1, batch.strings.size());
    next_process_ = next_id(1, batch.processes.size());
    next_thread_ = next_id(1, batch.threads.size());
    return frame(batch);
}

wire::Frame RecordedDay::batch(std::uint64_t batch_number) {
    constexpr std::uint64_t batch_ns = ns_per_s / batches_per_s;
    wire::Batch batch = program_.rows(batch_number, start_ns + batch_number * batch_ns,
                                      std::size_t{threads} * frequency_hz_ / batches_per_s, batch_ns);
    for (const wire::Row& row : batch.rows) sent_.samples += row.count;
    batch.monotonic_ns = start_ns + (batch_number + 1) * batch_ns;
    batch.realtime_ns = realtime_minus_monotonic_ns + static_cast<std::int64_t>(batch.monotonic_ns);
    const std::uint64_t number = batch_number / batches_per_s;
    if (batch_number % batches_per_s == batches_per_s - 1) add_second(batch, number);
    return frame(batch);
}

void RecordedDay::add_second(wire::Batch& batch, std::uint64_t number) {
    if (number % process_every_s == 0) add_processes(batch, number);
    if (number % loss_every_s == loss_every_s - 1) {
        const std::uint64_t count = 1 + number % 50;
        batch.losses.push_back({wire::LossReason::ring_full, count, end_ns(number) - ns_per_s / 2, end_ns(number), 1});
        sent_.lost += count;
    }
    add_counters(batch, number);
    wire::ProcessUnwind unwind;
    unwind.process = 1;
    unwind.samples = unwind.whole = sent_.samples;
    batch.unwinds = {unwind};
    batch.agent = wire::AgentStats{.cpu_ns = number * 2'000'000,
                                   .rss_bytes = 4 << 20,
                                   .ring_bytes = 1 << 20,
                                   .samples_read = sent_.samples,
                                   .samples_lost = sent_.lost};
}

void RecordedDay::add_processes(wire::Batch& batch, std::uint64_t number) {
    const auto pid = static_cast<std::uint32_t>(10'000 + number % 20'000);
    batch.string_base = next_string_;
    batch.strings = {fmt::format("job-{} --input /var/spool/jobs/{:08}", number % 17, number)};
    batch.process_base = next_process_;
    batch.thread_base = next_thread_;
    const wire::Id comm = 1 + first_counter_;  // any short name
    wire::Process process{.pid = pid, .parent_pid = 4242, .start_time_ns = end_ns(number), .comm = comm};
    batch.processes = {process};
    process.exec_generation = 1;
    process.command_line = next_string_;
    batch.processes.push_back(process);
    batch.threads = {{next_process_, pid, comm}, {next_process_ + 1, pid, comm}};
    const std::uint64_t time_ns = end_ns(number) - ns_per_s;
    batch.lifecycle = {{wire::LifecycleKind::fork, time_ns + 100'000'000, next_thread_, comm},
                       {wire::LifecycleKind::exec, time_ns + 101'000'000, next_thread_ + 1, comm},
                       {wire::LifecycleKind::exit, time_ns + 800'000'000, next_thread_ + 1, comm}};
    next_string_ += 1;
    next_process_ += 2;
    next_thread_ += 2;
    ++sent_.begins;
    ++sent_.exits;
}

void RecordedDay::add_counters(wire::Batch& batch, std::uint64_t number) {
    wire::CounterReading reading;
    reading.start_ns = end_ns(number) - ns_per_s;
    reading.end_ns = end_ns(number);
    reading.after_gap = number == 0;
    for (std::size_t i = 0; i < counters.size(); ++i) {
        const std::uint64_t value = (i + 1) * 1'000'000 + number * 7919 % 1'000;
        if (std::string_view(counters[i]) == "instructions") sent_.instructions += value;
        reading.values.push_back({.name = first_counter_ + static_cast<wire::Id>(i),
                                  .unit = unit_,
                                  .value = value,
                                  .enabled_ns = ns_per_s,
                                  .running_ns = ns_per_s});
    }
    batch.counters = {reading};
}

std::vector<wire::Frame> RecordedDay::health(std::uint64_t number) const {
    const std::uint64_t time_ns = end_ns(number);
    const auto head = [&](std::string_view type) {
        return fmt::format(R"("ts":{}.{:06},"mono_ns":{},"type":"{}")", 1'700'000'000 + time_ns / ns_per_s, number % 7,
                           time_ns, type);
    };
    const std::uint64_t some = number * 7919;
    const std::string system = fmt::format(
        "{{{},\"cpu\":{{\"overall_pct\":{}.3,\"per_core\":[{}.1,12.5,8.0,99.9,1.5,0.3,44.0,7.7],\"freq_mhz\":[1400,"
        "1400,"
        "2800,2800,1400,1400,2800,2800],\"num_cores\":8}},\"mem\":{{\"total_kb\":16303212,\"used_kb\":{},"
        "\"available_kb\":9123456,\"buffers_kb\":412344,\"cached_kb\":5123412,\"swap_total_kb\":2097148,"
        "\"swap_used_kb\":1024,\"used_pct\":44.0}},\"load\":{{\"avg_1m\":1.{:02},\"avg_5m\":1.04,\"avg_15m\":0.93}},"
        "\"temp_c\":54,\"uptime_sec\":{},\"context_switches\":{},\"interrupts\":{},\"procs_running\":3,"
        "\"procs_blocked\":0}}",
        head("system"), some % 100, some % 97, 7'000'000 + some % 100'000, some % 100, time_ns / ns_per_s,
        number * 5'000 + some % 3'000, number * 3'000 + some % 2'000);
    const std::string process = fmt::format(
        "{{{},\"pid\":4242,\"comm\":\"program\",\"state\":\"R\",\"cpu_pct\":{}.2,\"rss_kb\":{},\"vsize_kb\":1203456,"
        "\"threads\":4,\"fds\":37,\"voluntary_csw\":{},\"involuntary_csw\":{},\"minor_faults\":{},\"major_faults\":12,"
        "\"oom_score\":667}}",
        head("process"), some % 400, 250'000 + some % 10'000, number * 50, number * 3, number * 11);
    std::string interfaces;
    for (const char* name : {"lo", "eth0", "wlan0"})
        interfaces += fmt::format(
            "{}\"{}\":{{\"rx_bytes\":{},\"rx_packets\":{},\"rx_errors\":0,\"rx_drops\":0,\"tx_bytes\":{},"
            "\"tx_packets\":{},\"tx_errors\":0,\"tx_drops\":0}}",
            interfaces.empty() ? "" : ",", name, number * 120'000 + some, number * 100, number * 9'000 + some,
            number * 70);
    const std::string network = fmt::format("{{{},\"interfaces\":{{{}}}}}", head("network"), interfaces);
    const std::string agent = fmt::format(
        "{{{},\"cpu_pct\":0.{:02},\"rss_kb\":4096,\"ring_kb\":1024,\"queue_batches\":0,\"spool_bytes\":{},"
        "\"samples_read\":{},\"samples_lost\":{},\"frames_dropped\":0}}",
        head("agent"), some % 60, some % 9'000, sent_.samples, sent_.lost);
    return {{wire::Flag::metrics, system},
            {wire::Flag::metrics, process},
            {wire::Flag::metrics, network},
            {wire::Flag::metrics, agent}};
}

}  // namespace flamewire::bench
