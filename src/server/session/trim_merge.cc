#include "server/session/trim_merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/file.h"
#include "profile/store/recording_copy.h"
#include "profile/symbols/symbol_cache.h"
#include "server/session/batch_decoder.h"
#include "server/session/side_files.h"
#include "server/session/source_bundle.h"
#include "wire/control.h"
#include "wire/session_scan.h"

namespace flamewire::server {
namespace {

// Merged sessions begin here on their common clock. 0 would mean "unknown".
constexpr std::int64_t merged_start_ns = 1'000'000'000;

wire::RecordingId random_recording() {
    wire::RecordingId id{};
    // getrandom() never returns less for so few bytes.
    (void)!::getrandom(id.data(), id.size(), 0);
    return id;
}

// Reads the batches of a stream as a session does: each batch once, in order, without refused ones.
class BatchReader {
public:
    static Result<BatchReader> open(const std::string& stream_path) {
        return BatchReader(TRY(wire::SessionScanner::open(stream_path)));
    }
    // Calls `batch` for each readable batch and `other` for each other frame.
    template <class OfBatch, class OfOther>
    Result<bool> each(OfBatch batch, OfOther other) {
        while (const auto record = TRY(scanner_.next())) {
            if (record->frame.flag != wire::Flag::batch)
                TRY(other(*record));
            else if (const auto decoded = next_batch(record->frame))
                TRY(batch(*decoded));
        }
        return true;
    }

private:
    explicit BatchReader(wire::SessionScanner scanner) : scanner_(std::move(scanner)) {}

    Result<wire::Batch> next_batch(const wire::Frame& frame) {
        const std::string bytes = TRY(wire::batch_bytes(frame));
        const wire::BatchHeader header = TRY(wire::peek_header(as_bytes_view(bytes)));
        const Sequence::Kind kind = decoder_.sequence().classify(header);
        if (kind != Sequence::Kind::next && kind != Sequence::Kind::gap)
            return fail(ErrorCode::invalid, "not the next batch");
        BatchDecoder::Decoded decoded = TRY(decoder_.decode(header, as_bytes_view(bytes)));
        decoder_.accept(decoded);
        decoder_.finish(decoded, true);
        return std::move(decoded.batch);
    }

    wire::SessionScanner scanner_;
    BatchDecoder decoder_;
};

// A session under construction. The destructor removes it unless it is finished.
class SessionBuilder {
public:
    static Result<SessionBuilder> create(Catalog& catalog, const std::string& target,
                                         std::int64_t clock_difference_ns) {
        const wire::RecordingId recording = random_recording();
        auto session = TRY(catalog.create(recording, target));
        session->status().detach_agent();
        return SessionBuilder(catalog, std::move(session), clock_difference_ns);
    }
    SessionBuilder(SessionBuilder&&) = default;
    SessionBuilder& operator=(SessionBuilder&&) = delete;
    ~SessionBuilder() {
        if (session_) (void)catalog_.remove(session_->id());
    }

    [[nodiscard]] Session& session() const { return *session_; }
    profile::RecordingCopy copy() {
        return {session_->recording(), [this](wire::Batch batch) { return add(std::move(batch)); }};
    }
    std::shared_ptr<Session> finish() { return std::move(session_); }

private:
    SessionBuilder(Catalog& catalog, std::shared_ptr<Session> session, std::int64_t clock_difference_ns)
        : catalog_(catalog), session_(std::move(session)), clock_difference_ns_(clock_difference_ns) {}

    Result<bool> add(wire::Batch batch) {
        if (batch.epoch != epoch_) periods_.clear();
        epoch_ = batch.epoch;
        wire::learn_periods(batch, periods_);
        const std::int64_t arrival_ns = batch.realtime_ns + clock_difference_ns_;
        const wire::Frame frame = wire::batch_frame(wire::encode(batch, periods_));
        TRY(session_->ingest(frame.flag, frame.payload, arrival_ns));
        return true;
    }

    Catalog& catalog_;
    std::shared_ptr<Session> session_;
    std::int64_t clock_difference_ns_;
    std::uint32_t epoch_ = 0;
    wire::EventPeriods periods_;
};

// Skips batches that the session refused.
Result<bool> copy_batches(const Session& from, profile::RecordingCopy& copy, const auto& other) {
    BatchReader batches = TRY(BatchReader::open(from.stream_path()));
    return batches.each(
        [&](const wire::Batch& batch) -> Result<bool> {
            const auto added = copy.add(batch);
            // Any other error comes from the disk.
            if (!added && added.error().code != ErrorCode::invalid) return std::unexpected(added.error());
            return true;
        },
        other);
}

Result<bool> finish_session(SessionBuilder& made, profile::RecordingCopy& copy, const char* reason,
                            std::uint64_t closed_ns) {
    TRY(copy.finish(reason, closed_ns));
    TRY(made.session().sync());
    made.session().status().publish(true);
    return true;
}

bool health_in_window(const wire::SoundRecord& record, std::uint64_t start_ns, std::uint64_t end_ns) {
    if (record.frame.flag != wire::Flag::metrics) return false;
    const auto health = wire::parse_object(record.frame.payload);
    if (!health) return false;
    const auto time = health->FindMember("mono_ns");
    return time != health->MemberEnd() && time->value.IsUint64() && time->value.GetUint64() >= start_ns &&
           time->value.GetUint64() < end_ns;
}

// Combines one property of several sessions: the common value, or all values.
template <class Of>
std::string joined_values(std::span<const wire::Recording> all, Of of) {
    std::vector<std::string> words;
    for (const wire::Recording& one : all)
        if (const std::string word = fmt::format("{}", of(one)); std::ranges::find(words, word) == words.end())
            words.push_back(word);
    return fmt::format("{}", fmt::join(words, ", "));
}

// One sentence, or empty if the sessions are of one machine and were recorded alike.
std::string differences(std::span<const wire::Recording> all) {
    std::vector<std::string> differ;
    const auto compare = [&](std::string_view what, auto of) {
        const bool same = std::ranges::all_of(all, [&](const wire::Recording& one) { return of(one) == of(all[0]); });
        if (!same) differ.push_back(fmt::format("{} ({})", what, joined_values(all, of)));
    };
    compare("host", [](const wire::Recording& it) { return it.host; });
    compare("architecture", [](const wire::Recording& it) { return it.arch; });
    compare("kernel", [](const wire::Recording& it) { return it.kernel_release; });
    compare("frequency", [](const wire::Recording& it) { return it.frequency_hz; });
    compare("period", [](const wire::Recording& it) { return it.period; });
    compare("unwinding", [](const wire::Recording& it) { return it.unwind; });
    return differ.empty() ? "" : fmt::format("They differ in {}.", fmt::join(differ, ", "));
}

wire::Recording merged_recording(std::span<const wire::Recording> all, const std::string& name, bool one_boot) {
    wire::Recording about = all[0];
    about.target = !name.empty() ? name : joined_values(all, [](const wire::Recording& it) { return it.target; });
    about.host = joined_values(all, [](const wire::Recording& it) { return it.host; });
    about.arch = joined_values(all, [](const wire::Recording& it) { return it.arch; });
    about.kernel_release = joined_values(all, [](const wire::Recording& it) { return it.kernel_release; });
    std::set<std::uint32_t> pids;
    for (const wire::Recording& one : all) pids.insert(one.pids.begin(), one.pids.end());
    about.pids.assign(pids.begin(), pids.end());
    // The running kernel's symbols are valid for one boot only.
    if (!one_boot) about.boot_id.clear();
    about.start_ns = merged_start_ns;
    about.changed_ns = about.gap_ns = 0;
    return about;
}

void copy_side_file(const Session& from, const Session& to, std::string_view name, std::size_t limit) {
    if (const auto bytes = read_file(side_file(from.stream_path(), name), limit))
        (void)replace_file(side_file(to.stream_path(), name), as_bytes_view(*bytes));
}

// Copies the stored symbols and sources of all of them. `machine_numbers`: CopySource::apart of each.
void merge_side_files(std::span<const std::shared_ptr<Session>> from, const std::vector<std::uint32_t>& machine_numbers,
                      const std::string& boot_id, const Session& to) {
    std::vector<profile::CachedModule> modules;
    std::vector<BundledSource> sources;
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i]->symbols().write_cache();
        const auto bytes = read_file(side_file(from[i]->stream_path(), symbols_name), profile::max_symbol_cache_bytes);
        auto cached = bytes ? profile::decode_symbol_cache(as_bytes_view(*bytes)) : std::unexpected(bytes.error());
        if (cached) {
            for (profile::CachedModule& module : *cached) {
                if (module.identity.kind == symbol::ModuleKind::kernel) {
                    module.identity.boot_id = boot_id;
                    if (module.identity.build_id.empty()) module.identity.mtime_ns = machine_numbers[i];
                }
                profile::merge_cached(modules, std::move(module));
            }
        }
        for (BundledSource& source : read_source_bundle(from[i]->stream_path()).value_or(std::vector<BundledSource>{}))
            if (std::ranges::find(sources, source.name, &BundledSource::name) == sources.end())
                sources.push_back(std::move(source));
    }
    if (!modules.empty())
        (void)replace_file(side_file(to.stream_path(), symbols_name),
                           as_bytes_view(profile::encode_symbol_cache(modules).bytes));
    std::size_t bytes = 0;
    std::erase_if(sources, [&](const BundledSource& source) {
        bytes += source.text.size() + source.name.size() + source.path.size() + 32;
        return bytes > max_source_bundle_bytes;
    });
    if (!sources.empty())
        (void)replace_file(side_file(to.stream_path(), sources_name), as_bytes_view(encode_source_bundle(sources)));
}

// Data missing from a source session is also missing from the result.
void note_damage(profile::RecordingCopy& copy, const SessionInfo& info) {
    for (const wire::Notice& notice : info.notices)
        if (is_damage_notice(notice))
            copy.note("source-damaged", fmt::format("Of session {}, in its own time: {}", info.id, notice.text));
}

}  // namespace

Result<std::shared_ptr<Session>> trim_session(Catalog& catalog, Session& from, std::uint64_t start_ns,
                                              std::uint64_t end_ns) {
    const SessionInfo info = from.info();
    SessionBuilder made = TRY(SessionBuilder::create(catalog, info.target, info.started_ns - info.target_started_ns));
    profile::RecordingCopy copy = made.copy();
    copy.begin({.start_ns = start_ns, .end_ns = end_ns});
    const auto ms = [&](std::uint64_t ns) { return static_cast<double>(ns - std::min(ns, info.start_ns)) / 1e6; };
    note_damage(copy, info);
    copy.note("cut", fmt::format("This is session {} from {:.0f} to {:.0f} ms of its time.", from.id(), ms(start_ns),
                                 ms(end_ns)));
    TRY(copy_batches(from, copy, [&](const wire::SoundRecord& other) -> Result<bool> {
        if (!health_in_window(other, start_ns, end_ns)) return true;
        return made.session().append(other.frame.flag, other.frame.payload, other.arrival_ns);
    }));
    if (copy.rows() == 0)
        return fail(ErrorCode::not_found, "there are no samples in this window: choose one that has some");
    // A window may extend beyond the end of its session.
    const auto known_until_ns = info.start_ns + static_cast<std::uint64_t>(info.duration_ms * 1e6);
    TRY(finish_session(made, copy, "cut", std::min(end_ns, known_until_ns)));
    from.symbols().write_cache();
    copy_side_file(from, made.session(), symbols_name, profile::max_symbol_cache_bytes);
    copy_side_file(from, made.session(), sources_name, max_source_bundle_bytes);
    return made.finish();
}

Result<std::shared_ptr<Session>> merge_sessions(Catalog& catalog, std::span<const std::shared_ptr<Session>> from,
                                                const std::string& name) {
    std::vector<wire::Recording> recordings;
    std::vector<SessionInfo> infos;
    for (const auto& session : from) {
        infos.push_back(session->info());
        recordings.push_back(
            session->read([](const profile::Store& store) { return store.recording().value_or(wire::Recording{}); }));
    }
    const auto boot_of = [](const wire::Recording& one) { return one.boot_id; };
    const bool one_boot = !recordings[0].boot_id.empty() && std::ranges::all_of(recordings, [&](const auto& one) {
        return boot_of(one) == boot_of(recordings[0]);
    });
    const wire::Recording about = merged_recording(recordings, name, one_boot);
    // Wall-clock time of 0 on the common clock.
    const std::int64_t origin_ns = std::ranges::min(infos, {}, &SessionInfo::started_ns).started_ns - merged_start_ns;

    SessionBuilder made = TRY(SessionBuilder::create(catalog, about.target, 0));
    profile::RecordingCopy copy = made.copy();
    std::vector<std::string> names;
    std::vector<std::uint32_t> machine_numbers;
    std::uint64_t closed_ns = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const std::int64_t start_ns = static_cast<std::int64_t>(infos[i].start_ns);
        machine_numbers.push_back(one_boot ? 0 : static_cast<std::uint32_t>(i + 1));
        copy.begin({.shift_ns = infos[i].started_ns - origin_ns - start_ns,
                    .realtime_ns = origin_ns,
                    .apart = machine_numbers.back(),
                    .counters = false,
                    .about = about});
        names.push_back(fmt::format("{} ({})", from[i]->id(), recordings[i].host));
        TRY(copy_batches(*from[i], copy, [](const wire::SoundRecord&) -> Result<bool> { return true; }));
        closed_ns = std::max(closed_ns, static_cast<std::uint64_t>(infos[i].started_ns - origin_ns) +
                                            static_cast<std::uint64_t>(infos[i].duration_ms * 1e6));
    }
    for (const SessionInfo& info : infos) note_damage(copy, info);
    copy.note("merged",
              fmt::format("These are the samples of {}, each at its own time. {} Counters and device health are each "
                          "machine's own: they are in those sessions.",
                          fmt::join(names, " and "), differences(recordings)));
    TRY(finish_session(made, copy, "merged", closed_ns));
    merge_side_files(from, machine_numbers, about.boot_id, made.session());
    return made.finish();
}

}  // namespace flamewire::server
