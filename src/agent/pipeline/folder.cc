#include "agent/pipeline/folder.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "agent/pipeline/callchain.h"
#include "agent/pipeline/dictionary.h"
#include "agent/pipeline/kernel_names.h"
#include "agent/pipeline/kernel_programs.h"
#include "agent/pipeline/located_frames.h"
#include "agent/pipeline/row_table.h"
#include "agent/pipeline/stack_account.h"
#include "base/clock.h"
#include "base/file.h"
#include "counters/readings.h"
#include "unwind/stop_reason.h"

namespace flamewire::agent {
namespace {

// Within one batch the tables may outgrow their bound; at this multiple stacks that are new are not told apart any
// more.
constexpr std::size_t hard_bound_factor = 8;

// How stacks were found is told of each process that often: of a whole machine that is most of what stands beside rows.
constexpr std::uint64_t accounts_every_ns = 1'000'000'000;

// Names of others that wake threads of the target.
constexpr std::uint64_t outsiders_last_ns = 1'000'000'000;
constexpr std::size_t most_outsiders = 1024;

// A batch that waits for a stuck link still learns of this many forks, execs and exits.
constexpr std::size_t max_lifecycle = 65'536;
// … and of counters this much, in readings over longer times.
constexpr std::size_t max_readings = 256, max_counter_values = 65'536;

// What holds for every sample with the same chain.
namespace stack_flag {
constexpr std::uint8_t truncated = 1;
constexpr std::uint8_t unknown_process = 2;
constexpr std::uint8_t io_wait = 4;
}  // namespace stack_flag

// A chain as the kernel gave it or as a walk found it, in an address space of a certain content. The hash stands for
// the chain itself: two of 64,000 chains share one with a probability of 1 in 10^10.
struct ChainKey {
    std::uint64_t chain_hash = 0, generation = 0;
    bool operator==(const ChainKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const { return mix_in(chain_hash, generation); }
};

constexpr std::uint8_t need_unknown = unwind::stack_needs;

struct FoldedStack {
    wire::Id stack = 0;
    std::uint8_t flags = 0;
    unwind::StopReason stop = unwind::StopReason::chain_end;
    bool joined = false;
    std::uint8_t need = need_unknown;
    std::uint16_t user_frames = 0;  // 0: not a user's stack
};

bool ended_without_root(unwind::StopReason stop) {
    using unwind::StopReason;
    return stop == StopReason::no_map || stop == StopReason::no_info || stop == StopReason::bad_read ||
           stop == StopReason::not_advancing;
}

}  // namespace

struct Folder::State {
    State(FolderOptions options_in, ProcessTable& processes_in)
        : options(std::move(options_in)), processes(processes_in), dictionary(processes_in) {
        if (options.stacks) stacks = std::make_unique<UserStacks>(processes, *options.stacks);
    }

    void intern_events();
    void begin_epoch();
    wire::Id event_id(std::uint32_t index) const { return index < event_ids.size() ? event_ids[index] : 0; }
    FoldedStack fold(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);
    FoldedStack fold_chain(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);
    FoldedStack fold_walk(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process);
    void split(const SampleRecord& sample);
    void append_user_stack();
    std::optional<FoldedStack> full_tables();
    FoldedStack fold_frames(ProcessHandle process, unwind::StopReason stop);
    wire::Id fold_waker(const SampleRecord& sample, ThreadHandle woken);
    const std::string& name_of_outsider(const SampleRecord& sample);
    void add_waking(const SampleRecord& sample);
    void remember(std::uint64_t chain_hash, ProcessHandle process, const FoldedStack& stack);
    void account(const SampleRecord& sample, ProcessHandle process, const FoldedStack& stack);
    void tell_accounts(wire::Batch& batch, bool last);
    bool locate_frames(ProcessHandle process, bool& unknown_process);
    wire::Id locate_jit(const ResolvedAddress& resolved, std::uint32_t flags);
    void lose(wire::LossReason reason, std::uint64_t time_ns, std::uint32_t event);
    void add_loss(const wire::Loss& loss);
    std::size_t table_bytes() const;

    FolderOptions options;
    ProcessTable& processes;
    Dictionary dictionary;
    std::vector<wire::Id> event_ids;  // of options.events, in this epoch

    LocatedFrames located;
    IdTable<ChainKey> chains;  // -> index into folded, plus 1
    std::vector<FoldedStack> folded;
    RowTable rows;
    KernelNames kernel_names;
    KernelPrograms programs;

    wire::Batch next;  // what has no table: lifecycle, losses, symbols, notices
    std::uint64_t seq = 0;
    std::uint32_t epoch = 1;
    bool recording_due = true;
    bool epoch_due = false;
    bool lifecycle_notice_given = false;
    bool symbols_due = false;  // the new epoch is for a server that has not got our names
    wire::EventPeriods periods;
    std::uint32_t periods_epoch = 0;

    std::unique_ptr<UserStacks> stacks;
    StackPolicy policy;
    StackAccount accounts;
    std::uint64_t accounts_due_ns = 0;
    Absences absences;
    AbsenceEvents absence_events;
    std::vector<KernelFunction> io_functions;
    std::int64_t switches_not_told = 0;
    std::unordered_map<std::uint32_t, std::string> outsiders;  // tid -> name of who woke a thread, …
    std::uint64_t outsiders_ns = 0;                            // … asked for since then
    std::unordered_map<std::uint32_t, StackChoice> chosen;     // by pid

    // Scratch.
    std::vector<ChainFrame> frames;
    std::size_t stored = 0;                 // addresses that the kernel had stored in the chain
    std::vector<std::uint64_t> user_chain;  // of the chain
    UserStack user_stack;
    std::vector<wire::Id> locations;
};

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
    const std::vector<wire::Id*> away = absences.stacks();
    const std::vector<KeptStack> kept = dictionary.keep(away);
    dictionary.clear();
    located.clear();
    chains.clear();
    folded = {};
    if (std::exchange(symbols_due, false)) kernel_names.forget_names();
    intern_events();
    for (std::size_t i = 0; i < away.size(); ++i) *away[i] = dictionary.put_back(kept[i]);
}

std::size_t Folder::State::table_bytes() const {
    return dictionary.bytes() + chains.bytes() + folded.capacity() * sizeof(FoldedStack);
}

// Resolves `frames` into `locations`. False when a look into /proc on the way moved what had been resolved before it.
bool Folder::State::locate_frames(ProcessHandle process, bool& unknown_process) {
    const std::uint64_t before = processes.generation(process);
    std::uint64_t generation = before;
    locations.clear();
    unknown_process = false;
    for (const ChainFrame& frame : frames) {
        std::uint32_t flags = frame.return_address ? wire::location_flag::return_address : 0;
        if (frame.joined) flags |= wire::location_flag::joined;
        ResolvedAddress resolved;
        if (frame.kernel) {
            flags |= wire::location_flag::kernel_mode;
            resolved = processes.resolve_kernel(frame.address);
            const std::string_view program = programs.name_at(frame.address - (frame.return_address ? 1 : 0));
            if (!program.empty()) {
                locations.push_back(dictionary.function_of(resolved.module, {program, {}, 0},
                                                           flags & ~wire::location_flag::return_address));
                continue;
            }
            kernel_names.saw(resolved.address);
        } else {
            if (const wire::Id known = located.find({generation, frame.address, flags})) {
                locations.push_back(known);
                continue;
            }
            resolved = processes.resolve(process, frame.address);
            // Addresses of an address space that nobody can know mean nothing: one frame will say so.
            unknown_process = !processes.maps_known(process);
            if (unknown_process) break;
            generation = processes.generation(process);
        }
        locations.push_back(resolved.jit ? locate_jit(resolved, flags) : dictionary.address(resolved, flags));
        // What is in no mapping now may be in one that is still to be read.
        if (!frame.kernel && resolved.module != 0) located.put({generation, frame.address, flags}, locations.back());
    }
    return processes.generation(process) == before;
}

// Where code comes and goes, an address says nothing later: its function is looked up now. One that is not known yet
// stays an address, which a symbol names.
wire::Id Folder::State::locate_jit(const ResolvedAddress& resolved, std::uint32_t flags) {
    const bool return_address = (flags & wire::location_flag::return_address) != 0;
    const auto function = processes.jit_function(resolved.module, resolved.address - (return_address ? 1 : 0));
    if (!function) return dictionary.address(resolved, flags);
    return dictionary.function_of(resolved.module, *function, flags & wire::location_flag::joined);
}

// Folds `frames`, innermost first, the last of them those of `user_stack`; `stop` says whether the outermost ones are missing.
FoldedStack Folder::State::fold_frames(ProcessHandle process, unwind::StopReason stop) {
    FoldedStack result;
    result.stop = stop;
    for (const KernelFunction& function : io_functions)
        for (const ChainFrame& frame : frames)
            if (frame.kernel && frame.address - function.address < function.size) result.flags |= stack_flag::io_wait;
    bool unknown_process = false;
    // The second time finds everything in what the first has read.
    if (!locate_frames(process, unknown_process)) (void)locate_frames(process, unknown_process);
    if (user_stack.caller_missing && locations.size() == frames.size()) {
        const std::size_t innermost = frames.size() - user_stack.frames.size();
        locations.insert(locations.begin() + static_cast<std::ptrdiff_t>(innermost) + 1,
                         dictionary.name("[caller missing]"));
    }
    if (unknown_process) {
        result.flags |= stack_flag::unknown_process;
        locations.push_back(dictionary.name("[unknown process]"));
    } else if (ended_without_root(stop)) {
        locations.push_back(dictionary.name("[incomplete]"));
    }
    if (stop == unwind::StopReason::max_depth || stop == unwind::StopReason::truncated_copy) {
        result.flags |= stack_flag::truncated;
        locations.push_back(dictionary.name("[truncated]"));
    }
    for (std::size_t i = locations.size(); i-- > 0;) result.stack = dictionary.stack(result.stack, locations[i]);
    if (result.stack == 0) result.stack = dictionary.stack(0, dictionary.name("[no stack]"));
    return result;
}

// The call chain of the sample: kernel frames into `frames`, user addresses into `user_chain`.
void Folder::State::split(const SampleRecord& sample) {
    frames.clear();
    user_chain.clear();
    stored = split_callchain(sample.callchain, sample.user_mode, frames);
    const auto user = std::find_if(frames.begin(), frames.end(), [](const ChainFrame& frame) { return !frame.kernel; });
    for (auto frame = user; frame != frames.end(); ++frame) user_chain.push_back(frame->address);
    frames.erase(user, frames.end());
}

// Behind the kernel's frames.
void Folder::State::append_user_stack() {
    for (const unwind::Frame& frame : user_stack.frames)
        frames.push_back({frame.pc, false, frame.return_address, frame.found_by == unwind::FoundBy::joined});
}

void Folder::State::remember(std::uint64_t chain_hash, ProcessHandle process, const FoldedStack& stack) {
    folded.push_back(stack);
    // The generation as it is now: resolving may have read the maps anew.
    chains.find_or_add({chain_hash, processes.generation(process)}, static_cast<std::uint32_t>(folded.size()));
}

// Nothing new can be told apart until the next batch.
std::optional<FoldedStack> Folder::State::full_tables() {
    if (table_bytes() <= options.epoch_bytes * hard_bound_factor) return std::nullopt;
    epoch_due = true;
    FoldedStack result;
    result.stack = dictionary.stack(0, dictionary.name("[too many stacks]"));
    result.flags = stack_flag::truncated;
    return result;
}

// A stack that is a function of its call chain.
FoldedStack Folder::State::fold_chain(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    std::uint64_t chain_hash = sample.user_mode ? 1 : 0;
    for (const std::uint64_t entry : sample.callchain) chain_hash = mix_in(chain_hash, entry);
    // Only a chain without any address takes the ip into account; it is short then, and costs nothing.
    if (sample.callchain.size() <= 2) chain_hash = mix_in(chain_hash, sample.ip);
    if (const std::uint32_t known = chains.find({chain_hash, processes.generation(process)}); known != 0)
        return folded[known - 1];
    if (const auto full = full_tables()) return *full;

    split(sample);
    if (frames.empty() && user_chain.empty() && sample.ip != 0) {
        if (sample.user_mode)
            user_chain.push_back(sample.ip);
        else
            frames.push_back({sample.ip, true, false});
    }
    // Of a frame-pointer chain nobody knows whether it ended at the root; one of the kernel's limit was surely cut.
    const bool cut = stored >= options.max_stack;
    if (stacks) {
        stacks->find(sample, user_chain, thread, process, user_stack);
    } else {
        user_stack = {};
        for (std::size_t i = 0; i < user_chain.size(); ++i) {
            unwind::Frame frame;
            frame.pc = user_chain[i];
            frame.return_address = i > 0;
            user_stack.frames.push_back(frame);
        }
    }
    append_user_stack();
    if (cut && user_stack.stop != unwind::StopReason::root) user_stack.stop = unwind::StopReason::max_depth;
    FoldedStack result = fold_frames(process, user_stack.stop);
    result.user_frames = static_cast<std::uint16_t>(user_stack.frames.size());
    if (stacks && !cut)
        if (const auto need = stacks->judge(sample, process, user_stack))
            result.need = static_cast<std::uint8_t>(*need);
    if (!user_stack.provisional) remember(chain_hash, process, result);
    return result;
}

// A stack that must be found for each sample; that it is one of those seen before shows afterwards.
FoldedStack Folder::State::fold_walk(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    split(sample);
    stacks->find(sample, user_chain, thread, process, user_stack);
    std::uint64_t chain_hash = 2 + static_cast<std::uint64_t>(user_stack.stop);
    for (const ChainFrame& frame : frames) chain_hash = mix_in(chain_hash, frame.address);
    for (const unwind::Frame& frame : user_stack.frames) {
        const bool joined = frame.found_by == unwind::FoundBy::joined;
        chain_hash = mix_in(chain_hash, frame.pc << 2 | (frame.return_address ? 2U : 0U) | (joined ? 1U : 0U));
    }
    if (const std::uint32_t known = chains.find({chain_hash, processes.generation(process)}); known != 0)
        return folded[known - 1];
    if (const auto full = full_tables()) return *full;

    append_user_stack();
    // A kernel thread has no user stack that could have ended.
    FoldedStack result = fold_frames(process, user_stack.frames.empty() ? unwind::StopReason::root : user_stack.stop);
    result.joined = user_stack.joined;
    result.user_frames = static_cast<std::uint16_t>(user_stack.frames.size());
    if (const auto need = stacks->judge(sample, process, user_stack)) result.need = static_cast<std::uint8_t>(*need);
    if (!user_stack.provisional) remember(chain_hash, process, result);
    return result;
}

FoldedStack Folder::State::fold(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    return !stacks || UserStacks::by_chain_alone(sample) ? fold_chain(sample, thread, process)
                                                         : fold_walk(sample, thread, process);
}

// Who wakes a thread, as a stack in that thread's process, with a frame that names the waker innermost. Of another process,
// and of what an interrupt came upon, the kernel's functions alone: other addresses mean nothing here.
wire::Id Folder::State::fold_waker(const SampleRecord& sample, ThreadHandle woken) {
    const ProcessHandle process = processes.thread(woken).process;
    SampleRecord seen = sample;
    const ThreadHandle waker = sample.by_interrupt ? 0 : processes.newest_thread(sample.pid, sample.tid);
    const bool own = !sample.of_cpu && waker != 0 && processes.thread(waker).process == process;
    if (!own) {
        const auto user = std::ranges::find(sample.callchain, static_cast<std::uint64_t>(PERF_CONTEXT_USER));
        seen.callchain = sample.callchain.first(static_cast<std::size_t>(user - sample.callchain.begin()));
        seen.mode = wire::StackMode::fp;
        seen.ip = seen.register_abi = seen.register_mask = 0;
    }
    const wire::Id stack = fold(seen, own ? waker : woken, process).stack;
    std::string name = "an interrupt";
    if (!sample.by_interrupt) name = waker != 0 ? processes.thread(waker).comm : name_of_outsider(sample);
    return dictionary.stack(stack, dictionary.name("[woken by " + name + "]"));
}

// Nobody tells of its end, so it is not among the processes; and its name is asked for again after a second.
const std::string& Folder::State::name_of_outsider(const SampleRecord& sample) {
    if (sample.time_ns - outsiders_ns > outsiders_last_ns || outsiders.size() > most_outsiders) {
        outsiders.clear();
        outsiders_ns = sample.time_ns;
    }
    std::string& name = outsiders[sample.tid];
    if (!name.empty()) return name;
    name = read_file("/proc/" + std::to_string(sample.tid) + "/comm", 64).value_or("someone outside");
    if (name.ends_with('\n')) name.pop_back();
    return name;
}

void Folder::State::add_waking(const SampleRecord& sample) {
    if (const ThreadHandle woken = absences.asleep(sample.woken_tid, sample.time_ns); woken != 0)
        absences.woken(sample.woken_tid, fold_waker(sample, woken), sample.cpu, sample.time_ns);
    else
        absences.woken_early(sample.woken_tid, sample.time_ns);
}

void Folder::State::account(const SampleRecord& sample, ProcessHandle process, const FoldedStack& stack) {
    if (stack.user_frames == 0) return;
    accounts.add(process, sample.mode, stack.stop, stack.joined, stack.user_frames, sample.stack.size());
    if (stack.need != need_unknown)
        policy.note(process, sample.mode, static_cast<unwind::StackNeed>(stack.need), sample.time_ns);
}

void Folder::State::tell_accounts(wire::Batch& batch, bool last) {
    if (!stacks || (!last && batch.monotonic_ns < accounts_due_ns)) return;
    accounts_due_ns = batch.monotonic_ns + accounts_every_ns;
    accounts.take_changed([&](ProcessHandle process, wire::ProcessUnwind& counts) {
        if (batch.unwinds.size() == wire::max_batch_entries) return;
        const std::string& measured = policy.why(process);
        const auto given = chosen.find(processes.process(process).pid);
        if (!measured.empty())
            counts.why = measured;
        else
            counts.why = given != chosen.end() ? given->second.why : options.stacks->inherited_reason;
        wire::ProcessUnwind told = counts;
        told.process = dictionary.process(process);
        batch.unwinds.push_back(std::move(told));
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

Folder::Folder(FolderOptions options, ProcessTable& processes)
    : state_(std::make_unique<State>(std::move(options), processes)) {
    state_->intern_events();
}
Folder::~Folder() = default;

void Folder::add_sample(const SampleRecord& sample, std::uint32_t event) {
    State& state = *state_;
    const ThreadHandle thread = state.processes.thread_of(sample.pid, sample.tid, sample.time_ns);
    const ProcessHandle process = state.processes.thread(thread).process;
    const FoldedStack folded = state.fold(sample, thread, process);
    state.account(sample, process, folded);
    const bool away = state.absence_events.wanted != 0 && event == state.absence_events.first;
    if (away) {
        ++state.switches_not_told;
        const bool io = (folded.flags & stack_flag::io_wait) != 0;
        if (sample.tid != 0)
            state.absences.leaves(sample.tid, thread, folded.stack, sample.cpu, io ? Away::io_wait : Away::off_cpu,
                                  sample.time_ns);
    }
    wire::Row row;
    row.bucket = sample.time_ns / wire::default_bucket_ns;
    row.event = state.event_id(event);
    row.thread = state.dictionary.thread(thread);
    row.cpu = sample.cpu;
    row.stack = folded.stack;
    row.count = 1;
    row.weight = sample.period;
    if (!away) state.rows.add(row);
    if (folded.flags == 0) return;
    if ((folded.flags & stack_flag::truncated) != 0)
        state.lose(wire::LossReason::stack_truncated, sample.time_ns, event);
    if ((folded.flags & stack_flag::unknown_process) != 0)
        state.lose(wire::LossReason::unknown_process, sample.time_ns, event);
}

void Folder::follow_absences(AbsenceEvents events, std::vector<KernelFunction> io_functions) {
    State& state = *state_;
    state.absence_events = events;
    state.io_functions = std::move(io_functions);
    if (events.wanted == 0) state.absences.forget();
    // What is remembered of a chain says nothing of devices yet.
    state.chains.clear();
    state.folded.clear();
}

void Folder::add_waking(const SampleRecord& sample, bool heeded) {
    ++state_->switches_not_told;
    if (!heeded) return;
    state_->add_waking(sample);
    tell_absences();  // stacks are ids of this epoch
}

bool Folder::follows_absences() const { return state_->absence_events.wanted != 0; }
Absences& Folder::absences() { return state_->absences; }
std::int64_t Folder::switches_not_told() const { return state_->switches_not_told; }

void Folder::tell_absences() {
    State& state = *state_;
    const AbsenceEvents& events = state.absence_events;
    for (const Absences::Piece& piece : state.absences.take_pieces()) {
        const unsigned kind = static_cast<unsigned>(piece.kind);
        if ((events.wanted >> kind & 1U) == 0) continue;
        wire::Row row;
        row.bucket = piece.end_ns / wire::default_bucket_ns;
        row.event = state.event_id(events.first +
                                   static_cast<std::uint32_t>(std::popcount(events.wanted & ((1U << kind) - 1U))));
        row.thread = state.dictionary.thread(piece.thread);
        row.cpu = piece.cpu;
        row.stack = piece.stack;
        if (row.stack == 0) {
            std::string_view why = piece.born ? "[new thread]" : "[not seen leaving]";
            if (piece.kind == Away::woken_by) why = "[not seen waking]";
            row.stack = state.dictionary.stack(0, state.dictionary.name(why));
        }
        row.count = 1;
        row.weight = piece.length_ns;
        state.rows.add(row);
        --state.switches_not_told;
    }
}

void Folder::tell_thread_times() {
    State& state = *state_;
    for (wire::ThreadTimes& times : state.absences.take_times()) {
        if (state.next.thread_times.size() >= wire::max_batch_entries) break;  // 26,000 busy threads
        times.thread = state.dictionary.thread(times.thread);
        state.next.thread_times.push_back(std::move(times));
    }
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
            state.kernel_names.named(symbol.address, symbol.size);
    }
}

void Folder::follow_program(const KsymbolRecord& record) {
    State& state = *state_;
    // A chain may stand for another stack now.
    state.chains.clear();
    state.folded.clear();
    if (state.programs.follow(record)) return;
    const ResolvedAddress there = state.processes.resolve_kernel(record.address);
    const TargetSymbol symbol{there.module, there.address, record.size, KernelPrograms::full_name(record.name)};
    add_symbols(std::span(&symbol, 1));
}

void Folder::change_events(wire::Recording recording, std::vector<wire::Event> events,
                           std::vector<std::string> event_names, std::vector<std::string> event_units) {
    State& state = *state_;
    state.options.recording = std::move(recording);
    state.options.events = std::move(events);
    state.options.event_names = std::move(event_names);
    state.options.event_units = std::move(event_units);
    state.recording_due = true;
    state.intern_events();
}

void Folder::begin_epoch() {
    state_->epoch_due = true;
    state_->symbols_due = true;
    state_->accounts.tell_all_again();
}

void Folder::change_stacks(std::optional<UserStackOptions> options) {
    State& state = *state_;
    state.options.stacks = std::move(options);
    state.stacks.reset();
    if (state.options.stacks) state.stacks = std::make_unique<UserStacks>(state.processes, *state.options.stacks);
    // A chain may stand for another stack now.
    state.chains.clear();
    state.folded.clear();
}

void Folder::chose_stack_mode(std::uint32_t pid, const StackChoice& choice) {
    state_->chosen[pid] = choice;
    if (const ProcessHandle process = state_->processes.newest(pid); process != 0)
        state_->policy.chose(process, choice);
}

std::vector<Folder::ModeChange> Folder::wanted_stack_modes() const {
    std::vector<ModeChange> changes;
    for (StackPolicy::Change& change : state_->policy.wanted()) {
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
    // There may be thousands, and this is asked for with every batch.
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
    if (state_->stacks) state_->stacks->samples_lost();
}

void Folder::look_at_stacks() {
    if (state_->stacks) state_->stacks->look_at_stacks();
}

bool Folder::wants_looks() const { return state_->stacks && state_->stacks->wants_looks(); }

wire::Batch Folder::close_batch(bool last) {
    State& state = *state_;
    wire::Batch batch = std::exchange(state.next, {});
    batch.recording_id = state.options.recording_id;
    batch.epoch = state.epoch;
    batch.seq = ++state.seq;
    batch.monotonic_ns = monotonic_ns();
    batch.realtime_ns = realtime_ns();
    if (std::exchange(state.recording_due, false)) batch.recording = state.options.recording;
    state.tell_accounts(batch, last);
    state.dictionary.flush(batch);
    batch.rows = state.rows.take();
    if (state.periods_epoch != batch.epoch) {
        state.periods.clear();
        state.periods_epoch = batch.epoch;
    }
    wire::learn_periods(batch, state.periods);
    if (state.epoch_due || state.table_bytes() > state.options.epoch_bytes) state.begin_epoch();
    return batch;
}

const wire::EventPeriods& Folder::periods() const { return state_->periods; }

std::vector<std::uint64_t> Folder::unnamed_kernel_addresses() const { return state_->kernel_names.unnamed(); }

}  // namespace flamewire::agent
