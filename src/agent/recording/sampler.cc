#include "agent/recording/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "agent/log.h"
#include "agent/recording/recording_encode.h"
#include "base/clock.h"

namespace flamewire::agent {

namespace {

// Rings are drained at least this often, so that new processes are inspected while they are alive (design: a tick of
// 50-100 ms).
constexpr std::uint64_t tick_ns = 100'000'000;
// The same while stacks deeper than their copies are not confirmed yet, or kernel names are read.
constexpr std::uint64_t poll_tick_ns = 10'000'000;
// Kernel names are scanned in steps of this length, between two drains.
constexpr std::uint64_t names_piece_ns = 5'000'000;
constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
// How long the last batch waits for names of JIT code that are still being read.
constexpr std::uint64_t last_names_patience_ns = 2'000'000'000;

constexpr std::uint64_t ns_per_ms = 1'000'000;

}  // namespace

Sampler::Sampler(RecordingSetup setup, BatchSink& sink, ProcessTable& processes, RecorderMailbox& mailbox,
                 RecorderSnapshot& snapshot)
    : parts_(std::move(setup), processes, snapshot, *this),
      mailbox_(mailbox),
      producer_(parts_, sink, mailbox),
      adaptation_(parts_),
      reconfiguration_(parts_, adaptation_, producer_) {}

Result<bool> Sampler::open_events(const Capabilities& capabilities) {
    RecordingSetup& setup = parts_.setup;
    const RecordingPlan& plan = setup.plan;
    const Settings& settings = plan.settings;
    setup.capabilities = capabilities;
    setup.choice = TRY(choose_events(plan.wanted.events, settings.frequency_hz, settings.period, settings.kernel,
                                     capabilities, *setup.environment.kernel));
    parts_.off_cpu.find_io_functions(setup.choice);
    parts_.stacks.choose_first_modes();
    parts_.stacks.reset_copies(setup.choice);
    EventSetOptions options = parts_.stacks.event_options(setup.choice, plan.pids);
    options.enable_on_exec = plan.launched && plan.delay_ms == 0;
    options.start_disabled = plan.launched && plan.delay_ms != 0;
    (void)TRY(parts_.events.open(options));
    if (parts_.events.current().samples_whole_cpus() && !plan.scope.wide) {
        // Events of single threads would need too many descriptors. Copies were opened with the configured size and may
        // shrink from now on.
        parts_.stacks.prefer_whole_cpus(true);
        parts_.stacks.choose_first_modes();
        parts_.stacks.reset_copies(setup.choice);
        parts_.stacks.copies().apply({}, 0);
    }
    // Before its exec, a launched child is a copy of the agent. Records will describe it from exec on.
    if (!plan.launched)
        for (const std::uint32_t pid : plan.pids) parts_.processes.attach(pid);
    if (plan.scope.wide) parts_.processes.note_living();
    start_folding();
    for (const auto& [pid, choice] : parts_.stacks.modes()) parts_.folder.chose_stack_mode(pid, choice);
    (void)TRY(parts_.counters.open());
    parts_.snapshot.set_counters(parts_.counters.counting().states());
    return true;
}

void Sampler::start_folding() {
    const std::uint64_t start_ns = monotonic_ns();
    parts_.throttle.begin(start_ns);
    // Send the first batch at the first tick, so that the recording appears immediately.
    producer_.begin(start_ns, tick_ns);
    parts_.off_cpu.start(parts_.description.begin(start_ns));
    if (!parts_.setup.plan.launched) parts_.off_cpu.scan_threads(start_ns);
    parts_.snapshot.set_running(parts_.description.running(nullptr));
    parts_.batch.add_notices(parts_.setup.choice.notices);
    parts_.batch.add_notices(thinning_notices(parts_.setup.plan.wanted.events));
}

Result<bool> Sampler::open(const Capabilities& capabilities) {
    wire::RecordingId id{};
    std::string bytes(id.size(), '\0');
    fill_random(bytes.data(), bytes.size());
    bytes = System::current().input(inputs::recording_id, std::move(bytes));
    std::ranges::copy(bytes.substr(0, id.size()), reinterpret_cast<char*>(id.data()));
    parts_.description.set_id(id);
    parts_.priority_boost.begin();
    (void)TRY(open_events(capabilities));
    return producer_.begin_sink();
}

void Sampler::run() {
    do {
        parts_.events.current().wait(next_timeout(), mailbox_.wake_fd());
        mailbox_.clear_wake();
        run_pending_command();
        parts_.folder.verify_stacks();
        parts_.off_cpu.cut(parts_.events.drain());
        const std::uint64_t now = monotonic_ns();
        parts_.priority_boost.update(now);
        adaptation_.adapt_events(now);
        parts_.events.reopen_breakpoints();
        if (parts_.events.enable_if_due(now)) {
            (void)parts_.counters.counting().resume();
            parts_.off_cpu.scan_threads(now);
        }
        if (parts_.counters.counting().read_if_due(now, parts_.folder)) parts_.batch.mark();
        if (parts_.kernel_names.active()) parts_.kernel_names.advance(now + names_piece_ns);
        if (now >= producer_.due_ns() || parts_.batch.full() || parts_.stacks.copies().overwhelmed()) send_batch();
        // The main thread handles the exit of a launched command, because its parent gets the exit code.
        if (!parts_.setup.plan.launched && !parts_.setup.plan.follows_name && parts_.events.current().targets_gone())
            mailbox_.end("target exited");
        if (producer_.error()) mailbox_.end({});
    } while (!mailbox_.must_stop());
    finish();
}

std::chrono::milliseconds Sampler::next_timeout() const {
    const std::uint64_t now = monotonic_ns();
    const bool soon = parts_.folder.needs_poll() || parts_.kernel_names.active();
    std::uint64_t until = std::min(producer_.due_ns(), now + (soon ? poll_tick_ns : tick_ns));
    if (const auto enabled_at = parts_.events.enabled_at()) until = std::min(until, *enabled_at);
    // Round up, because waking too early would cause a useless round.
    return std::chrono::milliseconds(until <= now ? 0 : (until - now + ns_per_ms - 1) / ns_per_ms);
}

void Sampler::run_pending_command() {
    const std::optional<RecorderCommand> command = mailbox_.take_command();
    if (!command) return;
    (void)System::current().input(inputs::command, encode_command(*command));
    mailbox_.answer(perform(*command));
}

Result<bool> Sampler::perform(const RecorderCommand& command) {
    if (const auto* wanted = std::get_if<std::shared_ptr<const Change>>(&command))
        return reconfiguration_.change(**wanted);
    if (const auto* added = std::get_if<AddProcesses>(&command)) return reconfiguration_.add_processes(*added);
    if (const auto* added = std::get_if<AddBreakpoints>(&command)) return reconfiguration_.add_breakpoints(*added);
    if (const auto* counted = std::get_if<SetCountBy>(&command)) {
        (void)TRY(parts_.counters.counting().count_by(counted->by, parts_.members.living(), parts_.folder));
        parts_.snapshot.set_count_by(counted->by);
    } else if (const auto* module = std::get_if<OpenModule>(&command)) {
        *module->file = parts_.processes.duplicate_file(*module->identity);
    } else if (std::holds_alternative<Pause>(command)) {
        return pause();
    } else if (std::holds_alternative<Resume>(command)) {
        return resume();
    } else if (std::holds_alternative<ResolveKernel>(command)) {
        parts_.kernel_names.request();
    } else if (std::holds_alternative<BeginDelay>(command)) {
        parts_.counters.counting().begin();
        if (parts_.setup.plan.delay_ms != 0)
            parts_.events.enable_at(monotonic_ns() + parts_.setup.plan.delay_ms * ns_per_ms);
    }
    return true;
}

void Sampler::finish() {
    (void)parts_.events.current().disable();
    const std::uint64_t disabled_ns = monotonic_ns();
    while (parts_.processes.exchange_jit_names() < disabled_ns) {  // the wait is short, see exchange_jit_names()
    }
    parts_.events.current().drain_rest(*this);
    (void)parts_.events.add_unsampled(disabled_ns);
    parts_.folder.off_cpu().finish(parts_.events.paused() ? parts_.events.paused_ns() : disabled_ns);
    parts_.folder.emit_off_cpu();
    parts_.folder.emit_thread_times(disabled_ns);
    (void)parts_.counters.counting().read(parts_.folder);
    parts_.kernel_names.advance(never);
    if (producer_.names_kernel_at_end() || parts_.kernel_names.requested()) {
        parts_.kernel_names.begin();
        parts_.kernel_names.advance(never);
    }
    parts_.processes.settle_jit_names(last_names_patience_ns);
    producer_.produce_last();
}

void Sampler::send_batch() {
    const std::uint64_t now = monotonic_ns();
    producer_.produce(now);
    adaptation_.adapt_stacks(now, producer_.counts());
    producer_.publish();
}

Result<bool> Sampler::pause() {
    (void)TRY(parts_.events.pause(parts_.counters.counting()));
    parts_.snapshot.set_paused(true);
    return true;
}

Result<bool> Sampler::resume() {
    (void)TRY(parts_.events.resume(parts_.counters.counting()));
    parts_.snapshot.set_paused(false);
    return true;
}

void Sampler::on_record(const Record& record, std::optional<std::uint32_t> event) {
    parts_.batch.mark();
    std::visit([&](const auto& one) { take(one, event); }, record);
}

void Sampler::take(const SampleRecord& sample, Event event) {
    parts_.batch.add_sample();
    const EventSpec& spec = parts_.setup.choice.events[*event];
    parts_.stacks.copies().add_sample(spec.off_cpu != 0, sample.stack.size(), sample.stack_cut);
    if (sample.woken_tid != 0) return parts_.folder.add_waking(sample, parts_.events.sampling());
    if (!parts_.setup.plan.scope.cgroups.empty()) parts_.members.saw_sample(sample.pid);
    if (spec.period != 0) parts_.throttle.add_sample();
    parts_.folder.add_sample(sample, *event);
}

void Sampler::take(const ThrottleRecord& throttle, Event event) {
    if (throttle.unthrottle) return;
    parts_.folder.add_loss(
        {wire::LossReason::throttled, 1, throttle.time_ns, throttle.time_ns, event ? *event + 1 : 0, 0});
}

// The event set counts the lost samples. The process table needs the record to distrust its mappings.
void Sampler::take(const LostRecord& lost, Event event) {
    if (!lost.sideband) {
        // The event that wrote the record is usually the one whose samples were lost.
        if (event && parts_.setup.choice.events[*event].period != 0) parts_.throttle.add_lost(lost.count);
        parts_.stacks.copies().add_lost(lost.count);
        parts_.priority_boost.begin();
    }
    parts_.processes.on_record(lost);
    if (parts_.folder.tracks_off_cpu()) parts_.off_cpu.track(lost);
}

void Sampler::take(const MmapRecord& map, Event) {
    if (map.time_ns >= parts_.events.sideband_from_ns()) parts_.processes.on_record(map);
}

void Sampler::take(const CommRecord& comm, Event) {
    if (comm.time_ns >= parts_.events.sideband_from_ns()) apply(comm, parts_.members.include(comm.pid));
}

void Sampler::take(const TaskRecord& task, Event) {
    if (task.time_ns < parts_.events.sideband_from_ns()) return;
    const bool shown = parts_.members.include(task.pid);  // before follow() handles its exit
    parts_.members.follow(task);
    parts_.counters.counting().on_task(task);
    apply(task, shown);
}

template <class Change>
void Sampler::apply(const Change& change, bool shown) {
    if (const auto event = parts_.processes.on_record(change); event && shown) parts_.folder.add_lifecycle(*event);
    // The agent does not sample its own threads, so their switches out would be missing.
    const bool own = change.pid == System::current().constant(Constant::own_pid);
    if (parts_.folder.tracks_off_cpu() && shown && !own) parts_.off_cpu.track(change);
}

}  // namespace flamewire::agent
