// Opening, the loop, and its end. sampler_round.cc handles the records and batches of a round, sampler_adapt.cc adapts
// the recording to measurements.
#include "agent/recording/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

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
    : setup_(std::move(setup)),
      priority_boost_(setup_.environment.boost_priority),
      sink_(sink),
      processes_(processes),
      mailbox_(mailbox),
      snapshot_(snapshot),
      folder_(processes),
      batch_(folder_),
      kernel_names_(processes, folder_, batch_),
      stacks_(setup_),
      members_(setup_.plan),
      events_({setup_, members_, stacks_, processes, folder_, batch_, priority_boost_, *this}),
      counters_(setup_, members_, folder_, batch_),
      off_cpu_({setup_, members_, events_, processes, folder_, batch_}),
      description_(setup_, stacks_, folder_),
      outbox_(sink, snapshot) {}

Result<bool> Sampler::open_events(const Capabilities& capabilities) {
    const Settings& settings = setup_.plan.settings;
    setup_.capabilities = capabilities;
    setup_.choice = TRY(choose_events(setup_.plan.wanted.events, settings.frequency_hz, settings.period,
                                      settings.kernel, capabilities, *setup_.environment.kernel));
    off_cpu_.find_io_functions(setup_.choice);
    stacks_.choose_first_modes();
    stacks_.reset_copies(setup_.choice);
    EventSetOptions options = stacks_.event_options(setup_.choice, setup_.plan.pids);
    options.enable_on_exec = setup_.plan.launched && setup_.plan.delay_ms == 0;
    options.start_disabled = setup_.plan.launched && setup_.plan.delay_ms != 0;
    (void)TRY(events_.open(options));
    if (events_.current().samples_whole_cpus() && !setup_.plan.scope.wide) {
        // Events of single threads would need too many descriptors. Copies were opened with the configured size and may
        // shrink from now on.
        stacks_.prefer_whole_cpus(true);
        stacks_.choose_first_modes();
        stacks_.reset_copies(setup_.choice);
        stacks_.copies().apply({}, 0);
    }
    // Before its exec, a launched child is a copy of the agent. Records will describe it from exec on.
    if (!setup_.plan.launched)
        for (const std::uint32_t pid : setup_.plan.pids) processes_.attach(pid);
    if (setup_.plan.scope.wide) processes_.note_living();
    start_folding();
    for (const auto& [pid, choice] : stacks_.modes()) folder_.chose_stack_mode(pid, choice);
    (void)TRY(counters_.open());
    snapshot_.set_counters(counters_.counting().states());
    return true;
}

void Sampler::publish_running() { snapshot_.set_running(description_.running(&counters_.counting())); }

void Sampler::start_folding() {
    const std::uint64_t start_ns = monotonic_ns();
    last_flush_ns_ = start_ns;
    fault_throttle_.begin(start_ns);
    // Send the first batch at the first tick, so that the recording appears immediately.
    next_flush_ns_ = start_ns + std::min(setup_.plan.settings.interval_ms * ns_per_ms, tick_ns);
    off_cpu_.start(description_.begin(start_ns));
    if (!setup_.plan.launched) off_cpu_.scan_threads(start_ns);
    snapshot_.set_running(description_.running(nullptr));
    batch_.add_notices(setup_.choice.notices);
}

Result<bool> Sampler::open(const Capabilities& capabilities) {
    wire::RecordingId id{};
    std::string bytes(id.size(), '\0');
    fill_random(bytes.data(), bytes.size());
    bytes = System::current().input(inputs::recording_id, std::move(bytes));
    std::ranges::copy(bytes.substr(0, id.size()), reinterpret_cast<char*>(id.data()));
    description_.set_id(id);
    priority_boost_.begin();
    (void)TRY(open_events(capabilities));
    return sink_.begin(id);
}

void Sampler::run() {
    do {
        events_.current().wait(next_timeout(), mailbox_.wake_fd());
        mailbox_.clear_wake();
        run_pending_command();
        folder_.verify_stacks();
        off_cpu_.cut(events_.drain());
        const std::uint64_t now = monotonic_ns();
        priority_boost_.update(now);
        throttle_faults(now);
        check_unsampled(now);
        if (events_.enable_if_due(now)) {
            (void)counters_.counting().resume();
            off_cpu_.scan_threads(now);
        }
        if (counters_.counting().read_if_due(now, folder_)) batch_.mark();
        if (kernel_names_.active()) kernel_names_.advance(now + names_piece_ns);
        if (now >= next_flush_ns_ || batch_.full() || stacks_.copies().overwhelmed()) flush();
        // The session handles the exit of a launched command, because its parent gets the exit code.
        if (!setup_.plan.launched && !setup_.plan.follows_name && events_.current().targets_gone())
            mailbox_.end("target exited");
        if (outbox_.error()) mailbox_.end({});
    } while (!mailbox_.must_stop());
    finish();
}

std::chrono::milliseconds Sampler::next_timeout() const {
    const std::uint64_t now = monotonic_ns();
    const bool soon = folder_.needs_poll() || kernel_names_.active();
    std::uint64_t until = std::min(next_flush_ns_, now + (soon ? poll_tick_ns : tick_ns));
    if (const auto enabled_at = events_.enabled_at()) until = std::min(until, *enabled_at);
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
    if (const auto* wanted = std::get_if<std::shared_ptr<const Change>>(&command)) return change(**wanted);
    if (const auto* added = std::get_if<AddProcesses>(&command)) return add_processes(*added);
    if (const auto* counted = std::get_if<SetCountBy>(&command)) {
        (void)TRY(counters_.counting().count_by(counted->by, members_.living(), folder_));
        snapshot_.set_count_by(counted->by);
    } else if (const auto* module = std::get_if<OpenModule>(&command)) {
        *module->file = processes_.duplicate_file(*module->identity);
    } else if (std::holds_alternative<Pause>(command)) {
        return pause();
    } else if (std::holds_alternative<Resume>(command)) {
        return resume();
    } else if (std::holds_alternative<ResolveKernel>(command)) {
        kernel_names_.request();
    } else if (std::holds_alternative<BeginDelay>(command)) {
        counters_.counting().begin();
        if (setup_.plan.delay_ms != 0) events_.enable_at(monotonic_ns() + setup_.plan.delay_ms * ns_per_ms);
    }
    return true;
}

void Sampler::finish() {
    (void)events_.current().disable();
    const std::uint64_t disabled_ns = monotonic_ns();
    while (processes_.exchange_jit_names() < disabled_ns) {  // the wait is short, see exchange_jit_names()
    }
    events_.current().drain_rest(*this);
    (void)events_.add_unsampled(disabled_ns);
    folder_.off_cpu().finish(events_.paused() ? events_.paused_ns() : disabled_ns);
    folder_.emit_off_cpu();
    folder_.emit_thread_times(disabled_ns);
    (void)counters_.counting().read(folder_);
    kernel_names_.advance(never);
    if (sink_.names_kernel_at_end() || kernel_names_.requested()) {
        kernel_names_.begin();
        kernel_names_.advance(never);
    }
    processes_.settle_jit_names(last_names_patience_ns);
    const std::uint64_t now = monotonic_ns();
    gather(now);

    std::unique_ptr<ClosedBatch> last(new ClosedBatch{folder_.close_batch(true), folder_.periods()});
    last->batch.agent = own_cost();
    last->batch.end = mailbox_.end_of_recording();
    outbox_.add(std::move(last));
    outbox_.push_last(now);
    snapshot_.list_processes_next();
    publish();
}

Result<bool> Sampler::pause() {
    (void)TRY(events_.pause(counters_.counting()));
    snapshot_.set_paused(true);
    return true;
}

Result<bool> Sampler::resume() {
    (void)TRY(events_.resume(counters_.counting()));
    snapshot_.set_paused(false);
    return true;
}

}  // namespace flamewire::agent
