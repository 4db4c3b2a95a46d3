#include "agent/pipeline/folder.h"

#include <algorithm>
#include <utility>

#include "agent/pipeline/callchain.h"
#include "agent/pipeline/dictionary.h"
#include "agent/pipeline/kernel_names.h"
#include "agent/pipeline/row_table.h"
#include "base/clock.h"
#include "unwind/stop_reason.h"

namespace flamewire::agent {
namespace {

// Within one batch the tables may outgrow their bound; at this multiple stacks that are new are not told apart any
// more.
constexpr std::size_t hard_bound_factor = 8;

// A batch that waits for a stuck link still learns of this many forks, execs and exits.
constexpr std::size_t max_lifecycle = 65'536;

// What holds for every sample with the same chain.
namespace stack_flag {
constexpr std::uint32_t truncated = 1;
constexpr std::uint32_t unknown_process = 2;
}  // namespace stack_flag

// A chain as the kernel gave it, in an address space of a certain content. The hash stands for the chain itself: two of
// 64,000 chains share one with a probability of 1 in 10^10.
struct ChainKey {
    std::uint64_t chain_hash = 0, generation = 0;
    bool operator==(const ChainKey&) const = default;
    [[nodiscard]] std::uint64_t hash() const { return mix_in(chain_hash, generation); }
};

struct FoldedStack {
    wire::Id stack = 0;
    std::uint32_t flags = 0;
};

}  // namespace

struct Folder::State {
    State(FolderOptions options_in, ProcessTable& processes_in)
        : options(std::move(options_in)), processes(processes_in), dictionary(processes_in) {}

    void intern_events();
    void begin_epoch();
    wire::Id event_id(std::uint32_t index) const { return index < event_ids.size() ? event_ids[index] : 0; }
    std::uint64_t hash_of(const SampleRecord& sample) const;
    FoldedStack fold(const SampleRecord& sample, ProcessHandle process);
    FoldedStack fold_frames(ProcessHandle process, unwind::StopReason stop);
    bool locate_frames(ProcessHandle process, bool& unknown_process);
    void lose(wire::LossReason reason, std::uint64_t time_ns, std::uint32_t event);
    void add_loss(const wire::Loss& loss);
    std::size_t table_bytes() const;

    FolderOptions options;
    ProcessTable& processes;
    Dictionary dictionary;
    std::vector<wire::Id> event_ids;  // of options.events, in this epoch

    IdTable<ChainKey> chains;  // -> index into folded, plus 1
    std::vector<FoldedStack> folded;
    RowTable rows;
    KernelNames kernel_names;

    wire::Batch next;  // what has no table: lifecycle, losses, symbols, notices
    std::uint64_t seq = 0;
    std::uint32_t epoch = 1;
    bool recording_due = true;
    bool epoch_due = false;
    bool lifecycle_notice_given = false;
    bool symbols_due = false;  // the new epoch is for a server that has not got our names
    wire::EventPeriods periods;
    std::uint32_t periods_epoch = 0;

    std::vector<ChainFrame> frames;   // scratch
    std::vector<wire::Id> locations;  // scratch
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
    dictionary.clear();
    chains.clear();
    folded = {};
    if (std::exchange(symbols_due, false)) kernel_names.forget_names();
    intern_events();
}

std::size_t Folder::State::table_bytes() const {
    return dictionary.bytes() + chains.bytes() + folded.capacity() * sizeof(FoldedStack);
}

std::uint64_t Folder::State::hash_of(const SampleRecord& sample) const {
    std::uint64_t hash = sample.user_mode ? 1 : 0;
    for (const std::uint64_t entry : sample.callchain) hash = mix_in(hash, entry);
    // Only a chain without any address takes the ip into account; it is short then, and costs nothing.
    return sample.callchain.size() <= 2 ? mix_in(hash, sample.ip) : hash;
}

// Resolves `frames` into `locations`. False when a look into /proc on the way moved what had been resolved before it.
bool Folder::State::locate_frames(ProcessHandle process, bool& unknown_process) {
    const std::uint64_t generation = processes.generation(process);
    locations.clear();
    unknown_process = false;
    for (const ChainFrame& frame : frames) {
        std::uint32_t flags = frame.return_address ? wire::location_flag::return_address : 0;
        ResolvedAddress resolved;
        if (frame.kernel) {
            flags |= wire::location_flag::kernel_mode;
            resolved = processes.resolve_kernel(frame.address);
            kernel_names.saw(resolved.address);
        } else {
            resolved = processes.resolve(process, frame.address);
            // Addresses of an address space that nobody can know mean nothing: one frame will say so.
            unknown_process = !processes.maps_known(process);
            if (unknown_process) break;
        }
        locations.push_back(dictionary.address(resolved, flags));
    }
    return processes.generation(process) == generation;
}

// Folds `frames`, innermost first; `stop` says whether the outermost ones are missing.
FoldedStack Folder::State::fold_frames(ProcessHandle process, unwind::StopReason stop) {
    FoldedStack result;
    bool unknown_process = false;
    // The second time finds everything in what the first has read.
    if (!locate_frames(process, unknown_process)) (void)locate_frames(process, unknown_process);
    if (unknown_process) {
        result.flags |= stack_flag::unknown_process;
        locations.push_back(dictionary.name("[unknown process]"));
    }
    if (stop == unwind::StopReason::max_depth) {
        result.flags |= stack_flag::truncated;
        locations.push_back(dictionary.name("[truncated]"));
    }
    for (std::size_t i = locations.size(); i-- > 0;) result.stack = dictionary.stack(result.stack, locations[i]);
    return result;
}

FoldedStack Folder::State::fold(const SampleRecord& sample, ProcessHandle process) {
    const std::uint64_t chain_hash = hash_of(sample);
    const ChainKey key{chain_hash, processes.generation(process)};
    if (const std::uint32_t known = chains.find(key); known != 0) return folded[known - 1];

    if (table_bytes() > options.epoch_bytes * hard_bound_factor) {
        epoch_due = true;
        return {dictionary.stack(0, dictionary.name("[too many stacks]")), stack_flag::truncated};
    }
    frames.clear();
    const std::size_t stored = split_callchain(sample.callchain, sample.user_mode, frames);
    if (frames.empty() && sample.ip != 0) frames.push_back({sample.ip, !sample.user_mode, false});
    // Of a frame-pointer chain nobody knows whether it ended at the root; one of the kernel's limit was surely cut.
    const unwind::StopReason stop =
        stored >= options.max_stack ? unwind::StopReason::max_depth : unwind::StopReason::chain_end;
    FoldedStack result = fold_frames(process, stop);
    if (result.stack == 0) result.stack = dictionary.stack(0, dictionary.name("[no stack]"));

    folded.push_back(result);
    // The generation as it is now: resolving may have read the maps anew.
    chains.find_or_add({chain_hash, processes.generation(process)}, static_cast<std::uint32_t>(folded.size()));
    return result;
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
    const FoldedStack folded = state.fold(sample, state.processes.thread(thread).process);
    wire::Row row;
    row.bucket = sample.time_ns / wire::default_bucket_ns;
    row.event = state.event_id(event);
    row.thread = state.dictionary.thread(thread);
    row.cpu = sample.cpu;
    row.stack = folded.stack;
    row.count = 1;
    row.weight = sample.period;
    state.rows.add(row);
    if (folded.flags == 0) return;
    if ((folded.flags & stack_flag::truncated) != 0)
        state.lose(wire::LossReason::stack_truncated, sample.time_ns, event);
    if ((folded.flags & stack_flag::unknown_process) != 0)
        state.lose(wire::LossReason::unknown_process, sample.time_ns, event);
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

void Folder::add_symbols(std::span<const TargetSymbol> symbols) {
    State& state = *state_;
    for (const TargetSymbol& symbol : symbols) {
        state.next.symbols.push_back({state.dictionary.module(symbol.module), symbol.address, symbol.size,
                                      state.dictionary.string(symbol.name)});
        if (state.processes.module(symbol.module).kind == wire::ModuleKind::kernel)
            state.kernel_names.named(symbol.address, symbol.size);
    }
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
}

wire::Batch Folder::close_batch() {
    State& state = *state_;
    wire::Batch batch = std::exchange(state.next, {});
    batch.recording_id = state.options.recording_id;
    batch.epoch = state.epoch;
    batch.seq = ++state.seq;
    batch.monotonic_ns = monotonic_ns();
    batch.realtime_ns = realtime_ns();
    if (std::exchange(state.recording_due, false)) batch.recording = state.options.recording;
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
