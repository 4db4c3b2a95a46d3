#include "agent/pipeline/folder.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "agent/pipeline/folder_state.h"
#include "base/clock.h"
#include "counters/readings.h"

namespace flamewire::agent {
namespace {

// How often the unwind results of each process are sent. For a whole machine, they are most of a batch besides rows.
constexpr std::uint64_t accounts_every_ns = 1'000'000'000;

// Limit of forks, execs and exits in a batch that waits for a stuck link.
constexpr std::size_t max_lifecycle = 65'536;
// The same for counters. Readings are merged into longer ones to stay within it.
constexpr std::size_t max_readings = 256, max_counter_values = 65'536;

}  // namespace

void Folder::State::intern_events() {
    event_ids.clear();
    for (std::size_t i = 0; i < options.events.size(); ++i) {
        const std::string_view name = i < options.event_names.size() ? std::string_view(options.event_names[i]) : "";
        const std::string_view unit = i < options.event_units.size() ? std::string_view(options.event_units[i]) : "";
        event_ids.push_back(dictionary.event(options.events[i], name, unit));
    }
}

void Folder::State::begin_epoch() {
    ++epoch;
    epoch_due = false;
    recording_due = true;
    const std::vector<wire::Id*> waiting = off_cpu.stacks();
    const std::vector<SavedStack> kept = dictionary.keep(waiting);
    dictionary.clear();
    locator.clear();
    stacks.begin_epoch();
    if (std::exchange(symbols_due, false)) locator.kernel_names().forget_names();
    intern_events();
    for (std::size_t i = 0; i < waiting.size(); ++i) *waiting[i] = dictionary.put_back(kept[i]);
}

void Folder::State::account(const SampleRecord& sample, ProcessHandle process, const FoldedStack& stack) {
    if (stack.user_frames == 0) return;
    const auto mode = sample.copy_omitted ? std::nullopt : std::optional(sample.mode);
    accounts.add(process, mode, stack.stop, stack.joined, stack.user_frames, sample.stack.size());
    if (sample.stack_cut && stack.stop == unwind::StopReason::truncated_copy) ++truncated_copies;
    if (stack.other_stack) policy.note_other_stack(process);
    if (stack.need != need_unknown && mode)
        policy.note(process, sample.mode, static_cast<unwind::StackNeed>(stack.need), sample.time_ns);
}

void Folder::State::emit_accounts(wire::Batch& batch, bool last) {
    if (!options.stacks || (!last && batch.monotonic_ns < accounts_due_ns)) return;
    accounts_due_ns = batch.monotonic_ns + accounts_every_ns;
    accounts.take_changed([&](ProcessHandle process, wire::ProcessUnwind& counts) {
        if (batch.unwinds.size() == wire::max_batch_entries) return;
        const std::string& measured = policy.why(process);
        const auto given = chosen.find(processes.process(process).pid);
        if (!measured.empty())
            counts.why = measured;
        else
            counts.why = given != chosen.end() ? given->second.why : options.stacks->inherited_reason;
        wire::ProcessUnwind copy = counts;
        copy.process = dictionary.process(process);
        batch.unwinds.push_back(std::move(copy));
    });
}

void Folder::State::add_loss(const wire::Loss& loss) {
    for (wire::Loss& known : next.losses) {
        if (known.reason != loss.reason || known.event != loss.event || known.cpu_plus_1 != loss.cpu_plus_1) continue;
        known.count += loss.count;
        known.first_ns = std::min(known.first_ns, loss.first_ns);
        known.last_ns = std::max(known.last_ns, loss.last_ns);
        return;
    }
    next.losses.push_back(loss);
}

void Folder::State::lose(wire::LossReason reason, std::uint64_t time_ns, std::uint32_t event) {
    add_loss({reason, 1, time_ns, time_ns, event_id(event), 0});
}

Folder::Folder(ProcessTable& processes) : processes_(processes) {}
Folder::Folder(FolderOptions options, ProcessTable& processes) : Folder(processes) { begin(std::move(options)); }
Folder::~Folder() = default;

void Folder::begin(FolderOptions options) {
    state_ = std::make_unique<State>(std::move(options), processes_);
    state_->intern_events();
}

void Folder::add_sample(const SampleRecord& sample, std::uint32_t event) {
    State& state = *state_;
    const ThreadHandle thread = state.processes.thread_of(sample.pid, sample.tid, sample.time_ns);
    const ProcessHandle process = state.processes.thread(thread).process;
    const FoldedStack folded = state.stacks.fold(sample, thread, process);
    state.account(sample, process, folded);
    const bool is_switch = state.off_cpu_events.wanted != 0 && event == state.off_cpu_events.first;
    if (is_switch) {
        ++state.unemitted_switches;
        const bool io = (folded.flags & stack_flag::io_wait) != 0;
        if (sample.tid != 0 && sample.tid != perf::exited_task)
            state.off_cpu.leaves(sample.tid, thread, folded.stack, sample.cpu,
                                 io ? OffCpuReason::io_wait : OffCpuReason::off_cpu, sample.time_ns);
    }
    wire::Row row;
    row.bucket = sample.time_ns / wire::default_bucket_ns;
    row.event = state.event_id(event);
    row.thread = state.dictionary.thread(thread);
    row.cpu = sample.cpu;
    row.stack = folded.stack;
    row.count = 1;
    row.weight = sample.period;
    if (!is_switch) state.rows.add(row);
    if (sample.values != nullptr) state.hits.add(sample, event, process, row, state.options.hits);
    if (folded.flags == 0) return;
    if ((folded.flags & stack_flag::unnamed_jit) != 0) state.processes.saw_unnamed_jit(process);
    if ((folded.flags & stack_flag::truncated) != 0)
        state.lose(wire::LossReason::stack_truncated, sample.time_ns, event);
    if ((folded.flags & stack_flag::unknown_process) != 0)
        state.lose(wire::LossReason::unknown_process, sample.time_ns, event);
}

void Folder::State::add_waking(const SampleRecord& sample) {
    if (const ThreadHandle woken = off_cpu.asleep(sample.woken_tid, sample.time_ns); woken != 0)
        off_cpu.woken(sample.woken_tid, wakers.fold(sample, woken), sample.cpu, sample.time_ns);
    else
        off_cpu.woken_early(sample.woken_tid, sample.time_ns);
}

void Folder::start_off_cpu(OffCpuEvents events, std::vector<KernelFunction> io_functions) {
    State& state = *state_;
    state.off_cpu_events = events;
    if (events.wanted == 0) state.off_cpu.forget();
    state.stacks.set_io_functions(std::move(io_functions));
}

void Folder::add_waking(const SampleRecord& sample, bool heeded) {
    ++state_->unemitted_switches;
    if (!heeded) return;
    state_->add_waking(sample);
    emit_off_cpu();  // stacks are ids of this epoch
}

bool Folder::tracks_off_cpu() const { return state_->off_cpu_events.wanted != 0; }
OffCpuTracker& Folder::off_cpu() { return state_->off_cpu; }
std::int64_t Folder::unemitted_switches() const { return state_->unemitted_switches; }

void Folder::emit_off_cpu() {
    State& state = *state_;
    const OffCpuEvents& events = state.off_cpu_events;
    for (const OffCpuTracker::Slice& slice : state.off_cpu.take_slices()) {
        const unsigned kind = static_cast<unsigned>(slice.reason);
        if ((events.wanted >> kind & 1U) == 0) continue;
        wire::Row row;
        row.bucket = slice.end_ns / wire::default_bucket_ns;
        row.event = state.event_id(events.first +
                                   static_cast<std::uint32_t>(std::popcount(events.wanted & ((1U << kind) - 1U))));
        row.thread = state.dictionary.thread(slice.thread);
        row.cpu = slice.cpu;
        row.stack = slice.stack;
        if (row.stack == 0) {
            std::string_view why = slice.born ? "[new thread]" : "[not seen leaving]";
            if (slice.reason == OffCpuReason::woken_by) why = "[not seen waking]";
            row.stack = state.dictionary.stack(0, state.dictionary.name(why));
        }
        row.count = 1;
        row.weight = slice.length_ns;
        state.rows.add(row);
        --state.unemitted_switches;
    }
}

void Folder::emit_thread_times(std::uint64_t time_ns) {
    State& state = *state_;
    if (const std::uint64_t unknown_ns = state.off_cpu.take_unknown_ns(); unknown_ns != 0)
        state.add_loss({wire::LossReason::thread_state_unknown, unknown_ns, time_ns, time_ns,
                        state.event_id(state.off_cpu_events.first), 0});
    for (wire::ThreadTimes& times : state.off_cpu.take_times()) {
        if (state.next.thread_times.size() >= wire::max_batch_entries) break;  // 26,000 busy threads
        times.thread = state.dictionary.thread(times.thread);
        state.next.thread_times.push_back(std::move(times));
    }
}

void Folder::add_unsampled(std::uint32_t event, std::uint32_t pid, std::uint64_t weight, std::uint64_t time_ns) {
    State& state = *state_;
    wire::Row row;
    row.bucket = time_ns / wire::default_bucket_ns;
    row.event = state.event_id(event);
    row.thread = state.dictionary.thread(state.processes.thread_of(pid, pid, time_ns));
    row.stack = state.dictionary.stack(0, state.dictionary.name("[not sampled: short-lived threads]"));
    row.count = 1;
    row.weight = weight;
    state.rows.add(row);
    --state.unemitted_switches;
}

void Folder::add_lifecycle(const ProcessTable::LifecycleEvent& event) {
    State& state = *state_;
    if (state.next.lifecycle.size() == max_lifecycle) {
        if (!std::exchange(state.lifecycle_notice_given, true))
            add_notice({"lifecycle-dropped",
                        "More forks and exits than a batch holds: their marks are missing, samples are not", ""});
        return;
    }
    wire::Lifecycle lifecycle;
    lifecycle.kind = event.kind;
    lifecycle.time_ns = event.time_ns;
    lifecycle.thread = state.dictionary.thread(event.thread);
    if (event.kind == wire::LifecycleKind::exec || event.kind == wire::LifecycleKind::comm)
        lifecycle.comm = state.dictionary.string(state.processes.thread(event.thread).comm);
    state.next.lifecycle.push_back(lifecycle);
}

void Folder::add_loss(const wire::Loss& loss) {
    wire::Loss known = loss;
    known.event = loss.event == 0 ? 0 : state_->event_id(loss.event - 1);
    state_->add_loss(known);
}

void Folder::add_notice(wire::Notice notice) { state_->next.notices.push_back(std::move(notice)); }

void Folder::add_counters(wire::CounterReading reading, std::span<const Counter> counters,
                          std::span<const CounterDelta> deltas) {
    State& state = *state_;
    reading.values.reserve(deltas.size());
    for (const CounterDelta& delta : deltas) {
        const Counter& counter = counters[delta.counter];
        wire::CounterValue value;
        value.name = state.dictionary.string(counter.name);
        value.unit = state.dictionary.string(counter.unit);
        value.part = state.dictionary.string(counter.part);
        if (delta.tid != 0) {
            ThreadHandle thread = state.processes.newest_thread(delta.pid, delta.tid);
            if (thread == 0) thread = state.processes.thread_of(delta.pid, delta.tid, reading.end_ns);
            value.thread = state.dictionary.thread(thread);
        }
        value.cpu_plus_1 = delta.cpu_plus_1;
        value.status = delta.status;
        value.value = delta.value;
        value.enabled_ns = delta.enabled_ns;
        value.running_ns = delta.running_ns;
        reading.values.push_back(value);
    }
    state.next.counters.push_back(std::move(reading));
    flamewire::counters::shorten(state.next.counters, max_readings, max_counter_values);
}

void Folder::add_symbols(std::span<const TargetSymbol> symbols) {
    State& state = *state_;
    for (const TargetSymbol& symbol : symbols) {
        state.next.symbols.push_back({state.dictionary.module(symbol.module), symbol.address, symbol.size,
                                      state.dictionary.string(symbol.name)});
        if (state.processes.module(symbol.module).kind == wire::ModuleKind::kernel)
            state.locator.kernel_names().named(symbol.address, symbol.size);
    }
}

void Folder::follow_program(const KsymbolRecord& record) {
    State& state = *state_;
    state.stacks.forget_chains();
    const std::string name = std::string(record.name) + " [bpf]";  // as in kallsyms
    if (state.locator.follow_program(record, name)) return;
    const ResolvedAddress there = state.processes.resolve_kernel(record.address);
    const TargetSymbol symbol{there.module, there.address, record.size, name};
    add_symbols(std::span(&symbol, 1));
}

void Folder::change_events(wire::Recording recording, FolderOptions options) {
    State& state = *state_;
    state.options.recording = std::move(recording);
    if (state.options.event_names != options.event_names || state.options.hits != options.hits) state.hits.restart();
    state.options.events = std::move(options.events);
    state.options.event_names = std::move(options.event_names);
    state.options.event_units = std::move(options.event_units);
    state.options.hits = options.hits;
    state.recording_due = true;
    state.intern_events();
}

void Folder::begin_epoch() {
    state_->epoch_due = true;
    state_->symbols_due = true;
    state_->accounts.emit_all_again();
}

std::uint64_t Folder::truncated_copies() const { return state_->truncated_copies; }

void Folder::change_stacks(std::optional<UserStackOptions> options) {
    State& state = *state_;
    state.options.stacks = std::move(options);
    state.stacks.change_unwinding(state.options.stacks);
}

void Folder::chose_stack_mode(std::uint32_t pid, const StackChoice& choice) {
    if (pid == 0) return state_->policy.chose(StackPolicy::inherited, choice);
    state_->chosen[pid] = choice;
    if (const ProcessHandle process = state_->processes.newest(pid); process != 0)
        state_->policy.chose(process, choice);
}

std::vector<Folder::ModeChange> Folder::wanted_stack_modes() const {
    std::vector<ModeChange> changes;
    for (StackPolicy::Change& change : state_->policy.wanted()) {
        if (change.process == StackPolicy::inherited) {
            changes.push_back({0, std::move(change.choice)});
            continue;
        }
        const auto process = static_cast<ProcessHandle>(change.process);
        const std::uint32_t pid = state_->processes.process(process).pid;
        if (pid == 0 || state_->processes.newest(pid) != process)
            state_->policy.forget(change.process);
        else
            changes.push_back({pid, std::move(change.choice)});
    }
    return changes;
}

std::vector<ProcessStacks> Folder::stacks_of_processes(std::size_t count) const {
    // There may be thousands, and this is called for every batch.
    using Account = std::pair<const ProcessHandle, StackAccount::Entry>;
    std::vector<const Account*> order;
    order.reserve(state_->accounts.entries().size());
    for (const Account& account : state_->accounts.entries()) order.push_back(&account);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
    std::partial_sort(order.begin(), end, order.end(), [](const Account* a, const Account* b) {
        const std::uint64_t more = a->second.counts.samples, less = b->second.counts.samples;
        return more != less ? more > less : a->first < b->first;
    });
    std::vector<ProcessStacks> result;
    for (auto account = order.begin(); account != end; ++account) {
        const ProcessInfo& info = state_->processes.process((*account)->first);
        result.push_back({info.pid, info.comm, (*account)->second.counts});
    }
    return result;
}

void Folder::samples_lost() {
    if (UserStacks* stacks = state_->stacks.user_stacks()) stacks->samples_lost();
}

void Folder::verify_stacks() {
    if (UserStacks* stacks = state_->stacks.user_stacks()) stacks->verify_stacks();
}

bool Folder::needs_poll() const {
    const UserStacks* stacks = state_->stacks.user_stacks();
    return stacks != nullptr && stacks->needs_poll();
}

std::uint32_t Folder::process_of_costly_tables() const {
    const UserStacks* stacks = state_->stacks.user_stacks();
    return stacks != nullptr ? stacks->process_of_costly_tables() : 0;
}

wire::Batch Folder::close_batch(bool last) {
    State& state = *state_;
    // A server on another machine has no image of this vDSO, which is in no file.
    for (const ModuleHandle vdso : state.dictionary.take_new_vdsos()) add_symbols(state.processes.vdso_symbols(vdso));
    wire::Batch batch = std::exchange(state.next, {});
    batch.recording_id = state.options.recording_id;
    batch.epoch = state.epoch;
    batch.seq = ++state.seq;
    batch.monotonic_ns = monotonic_ns();
    batch.realtime_ns = realtime_ns();
    if (std::exchange(state.recording_due, false)) batch.recording = state.options.recording;
    state.emit_accounts(batch, last);
    state.dictionary.flush(batch);
    batch.rows = state.rows.take();
    batch.hits = state.hits.take();
    if (state.periods_epoch != batch.epoch) {
        state.periods.clear();
        state.periods_epoch = batch.epoch;
    }
    wire::learn_periods(batch, state.periods);
    if (state.epoch_due || state.stacks.epoch_due()) state.begin_epoch();
    return batch;
}

const wire::EventPeriods& Folder::periods() const { return state_->periods; }

std::vector<std::uint64_t> Folder::unnamed_kernel_addresses() const { return state_->locator.kernel_names().unnamed(); }

}  // namespace flamewire::agent
