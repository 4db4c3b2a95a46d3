#include "profile/store/store.h"

#include <algorithm>

#include "profile/store/apply.h"
#include "profile/store/coarsen.h"
#include "profile/store/tables.h"

namespace flamewire::profile {

Store::Store(StoreLimits limits) : tables_(std::make_unique<Tables>(limits)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Result<bool> Store::apply(const wire::Batch& batch) {
    Tables& t = *tables_;
    if (t.full) {
        count_only(t, batch);
        return true;
    }
    const bool same_recording = batch.recording_id == t.epoch.recording_id;
    if (same_recording && t.epoch.epoch != 0 && batch.epoch < t.epoch.epoch)
        return fail(ErrorCode::invalid, "the batch is of an epoch that has ended");
    if (same_recording && batch.epoch == t.epoch.epoch) {
        (void)TRY(validate(t, batch, t.epoch));
    } else {
        EpochMaps fresh;
        fresh.recording_id = batch.recording_id;
        fresh.epoch = batch.epoch;
        (void)TRY(validate(t, batch, fresh));
        t.epoch = std::move(fresh);
    }
    return apply_batch(t, batch);
}

std::vector<PendingModule> Store::take_pending() {
    Tables& t = *tables_;
    std::vector<PendingModule> pending;
    std::vector<std::uint32_t> slot(t.modules.size());  // module -> index in pending + 1
    for (const LocationId id : t.wanted) {
        Location& location = t.locations[id];
        location.state = FrameState::asked;
        if (slot[location.module] == 0) {
            pending.push_back({location.module, {}, {}});
            slot[location.module] = narrow32(pending.size());
        }
        PendingModule& module = pending[slot[location.module] - 1];
        module.locations.push_back(id);
        module.addresses.push_back(location.code_address());
    }
    t.asked += t.wanted.size();
    t.wanted.clear();
    t.wanted.shrink_to_fit();
    return pending;
}

// Frames of one address as entries of this store. Empty if `resolved` has none, or is malformed.
static std::vector<LocationFrame> own_frames(Store::Tables& t, LocationId id, const symbol::Resolved& resolved,
                                             std::size_t index, std::vector<StringId>& files) {
    constexpr std::size_t max_frames = 1'000;  // inlined into each other at one address
    std::vector<LocationFrame> own;
    const std::size_t first = resolved.first[index];
    const std::size_t last = std::min<std::size_t>(resolved.first[index + 1], resolved.frames.size());
    for (std::size_t i = first; i < last && own.size() < max_frames; ++i) {
        const symbol::SourceFrame& frame = resolved.frames[i];
        if (frame.function >= resolved.strings.size() || frame.file >= resolved.strings.size()) return {};
        if (files[frame.file] == 0) files[frame.file] = t.strings.intern(resolved.strings[frame.file]);
        const StringId file = files[frame.file];
        own.push_back(
            {t.intern_function(resolved.strings[frame.function], t.locations[id], frame.inlined, file, frame.line),
             file, frame.line});
    }
    return own;
}

void Store::set_owner(const std::string& owner) { tables_->owner = owner; }

void Store::set_frames(const PendingModule& pending, const symbol::Resolved& resolved) {
    Tables& t = *tables_;
    if (resolved.first.size() != pending.locations.size() + 1) return;
    t.count_beside_frames();
    std::vector<StringId> files(resolved.strings.size());
    std::vector<std::uint8_t> changed(t.locations.size());
    bool any = false;
    for (std::size_t i = 0; i < pending.locations.size(); ++i) {
        const LocationId id = pending.locations[i];
        if (id == 0 || id >= t.locations.size() || t.locations[id].state == FrameState::named) continue;
        // If a BPF program has ended, the target's name is used: another program may be at its address here.
        const bool ended = t.is_ended_program(t.locations[id]);
        std::vector<LocationFrame> own = ended ? std::vector<LocationFrame>{} : own_frames(t, id, resolved, i, files);
        const bool known = !own.empty();
        if (!known) own.push_back(t.frame_from_wire(t.locations[id]));
        Location& location = t.locations[id];
        if (location.state == FrameState::asked) --t.asked;
        // A location that is wanted again stays wanted, because this answer is outdated.
        if (location.state != FrameState::wanted) location.state = known ? FrameState::resolved : FrameState::unknown;
        location.by_symbolizer = known;
        if (t.replace_frames(id, own)) changed[id] = any = true;
    }
    if (!any) return;
    t.remap_nodes(changed);
    ++t.version;
}

void Store::forget_frames(std::span<const ModuleId> modules) {
    Tables& t = *tables_;
    std::vector<std::uint8_t> forgotten(t.modules.size(), modules.empty() ? 1 : 0);
    for (const ModuleId module : modules)
        if (module < forgotten.size()) forgotten[module] = 1;
    for (LocationId id = 1; id < t.locations.size(); ++id) {
        Location& location = t.locations[id];
        if (forgotten[location.module] == 0 || location.state == FrameState::named ||
            location.state == FrameState::wanted)
            continue;
        if (location.state == FrameState::asked) --t.asked;
        location.state = FrameState::wanted;
        t.wanted.push_back(id);
    }
}

std::size_t Store::pending_locations() const { return tables_->wanted.size() + tables_->asked; }

std::size_t Store::unresolved_kernel_locations() const {
    const Tables& t = *tables_;
    return static_cast<std::size_t>(std::ranges::count_if(t.locations, [&](const Location& location) {
        const symbol::ModuleKind kind = t.modules[location.module].identity.kind;
        return location.state == FrameState::unknown &&
               (kind == symbol::ModuleKind::kernel || kind == symbol::ModuleKind::vdso) &&
               t.functions[t.frames[location.first_frame].function].kind == FrameKind::unknown;
    }));
}

void Store::touch() { ++tables_->version; }

std::uint64_t Store::version() const { return tables_->version; }
std::size_t Store::row_count() const { return tables_->rows.size(); }
std::size_t Store::memory_bytes() const { return tables_->memory_bytes(); }
bool Store::tables_full() const { return tables_->full; }
bool Store::inlined_left_out() const { return tables_->inlined_left_out; }
std::span<const Module> Store::modules() const { return tables_->modules; }
std::span<const Process> Store::processes() const { return tables_->processes; }
std::span<const ProcessId> Store::processes_with_stacks() const { return tables_->processes_with_stacks; }
std::span<const Thread> Store::threads() const { return tables_->threads; }
std::span<const Event> Store::events() const { return tables_->events; }
const CounterHistory& Store::counters() const { return tables_->counters; }
const ThreadTimesHistory& Store::thread_times() const { return tables_->thread_times; }
const HitHistory& Store::hits() const { return tables_->hits; }
const Marks& Store::marks() const { return tables_->marks; }
std::span<const LossTotal> Store::losses() const { return tables_->losses; }
const std::vector<wire::Notice>& Store::notices() const { return tables_->notices; }
const std::optional<wire::Recording>& Store::recording() const { return tables_->recording; }
const std::optional<wire::AgentStats>& Store::agent_stats() const { return tables_->agent_stats; }
const std::optional<wire::End>& Store::end() const { return tables_->end; }
std::string_view Store::string(StringId id) const { return tables_->strings[id]; }

std::uint64_t Store::first_ns() const {
    const auto chunks = tables_->rows.chunks();
    if (chunks.empty()) return 0;
    return std::max(std::ranges::min_element(chunks, {}, &RowChunk::first_ns)->first_ns(), tables_->first_row_ns);
}

std::uint64_t Store::end_ns() const {
    const auto chunks = tables_->rows.chunks();
    if (chunks.empty()) return 0;
    return std::min(std::ranges::max_element(chunks, {}, &RowChunk::end_ns)->end_ns(), tables_->last_row_end_ns);
}

std::uint64_t Store::known_until_ns() const { return std::max(end_ns(), tables_->closed_ns); }

void Store::note_reconnect(std::uint64_t start_ns, std::uint64_t end_ns) {
    tables_->marks.add({.kind = MarkKind::reconnect, .start_ns = start_ns, .end_ns = std::max(start_ns, end_ns)});
    ++tables_->version;
}

void Store::note_missing(std::uint64_t start_ns, std::uint64_t end_ns) {
    tables_->marks.add({.kind = MarkKind::loss,
                        .start_ns = start_ns,
                        .end_ns = std::max(start_ns, end_ns),
                        .count = 0,
                        .reason = wire::LossReason::batches_missing});
    ++tables_->version;
}

Weight Store::total(EventId event) const {
    const std::vector<Weight>& totals = tables_->event_totals;
    if (event != 0) return event < totals.size() ? totals[event] : Weight{};
    Weight all;
    for (const Weight& weight : totals) all.samples += weight.samples;
    return all;
}

std::vector<Coverage> Store::coverage() const {
    std::vector<Coverage> stretches;
    if (tables_->dropped_end_ns != 0)
        stretches.push_back({tables_->dropped_first_ns, tables_->dropped_end_ns, 0, false, false, false, true});
    for (const RowChunk& chunk : tables_->rows.chunks()) {
        const CoarseLevel& level = coarse_levels[chunk.level];
        Coverage next{std::max(chunk.first_ns(), tables_->first_row_ns),
                      std::min(chunk.end_ns(), tables_->last_row_end_ns),
                      chunk.bucket_ns,
                      chunk.level == 0,
                      level.cpu_folded,
                      level.thread_folded,
                      false};
        Coverage* const last = stretches.empty() ? nullptr : &stretches.back();
        if (last != nullptr && !last->dropped && last->bucket_ns == next.bucket_ns && last->whole == next.whole &&
            last->cpu_folded == next.cpu_folded && last->thread_folded == next.thread_folded) {
            last->start_ns = std::min(last->start_ns, next.start_ns);
            last->end_ns = std::max(last->end_ns, next.end_ns);
        } else {
            stretches.push_back(next);
        }
    }
    return stretches;
}

}  // namespace flamewire::profile
