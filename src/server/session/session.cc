#include "server/session/session.h"

#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "profile/query/query.h"
#include "profile/store/tables.h"
#include "server/limits.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

// If the agent's spool holds more than this, acknowledge at once. The spool has 8 MiB by default, and at most half of
// it is in flight.
constexpr std::uint64_t urgent_spool_bytes = std::uint64_t{1} << 20;
constexpr std::chrono::seconds thorough_every{1};
// While a large file is read, it is shown again after each period of this length.
constexpr std::chrono::milliseconds read_slice{200};

// The first record of a stream whose agent has a pairing key. Only the server writes it; the agent's own frames follow
// it.
std::string link_record(std::string_view key) { return fmt::format(R"({{"type":"link","key":"{}"}})", key); }

bool is_known(wire::Flag flag) {
    return flag == wire::Flag::batch || flag == wire::Flag::reply || flag == wire::Flag::metrics;
}

// The time of the first sample at or after `after_ns`. If there is none, the time when the batch was closed.
std::uint64_t first_sample_ns(const wire::Batch& batch, std::uint64_t after_ns) {
    std::uint64_t first_ns = batch.monotonic_ns;
    for (const wire::Row& row : batch.rows)
        if (const std::uint64_t at_ns = row.bucket * batch.bucket_ns; at_ns >= after_ns)
            first_ns = std::min(first_ns, at_ns);
    return first_ns;
}

std::string recording_hex(const wire::RecordingId& id) { return to_hex(std::as_bytes(std::span(id))); }

}  // namespace

std::string_view disk_remedy(int errno_value) {
    switch (errno_value) {
        case ENOSPC:
        case EDQUOT:
            return "free some space under the data directory";
        case EROFS:
        case EACCES:
        case EPERM:
            return "make the data directory writable for the server";
        default:
            return {};
    }
}

Error with_disk_remedy(Error error) {
    if (const auto remedy = disk_remedy(error.errno_value); !remedy.empty()) (error.message += ": ") += remedy;
    return error;
}

const std::string& own_boot_id() {
    static const std::string id = [] {
        auto text = read_file("/proc/sys/kernel/random/boot_id", 128).value_or("");
        while (!text.empty() && text.back() == '\n') text.pop_back();
        return text;
    }();
    return id;
}

Session::Session(std::string id, std::string stream_path, SessionLimits limits)
    : id_(std::move(id)),
      stream_path_(std::move(stream_path)),
      max_stream_bytes_(limits.stream_bytes),
      store_(limits.store) {
    info_.id = id_;
}

Result<std::shared_ptr<Session>> Session::create(std::string id, std::string stream_path,
                                                 const wire::RecordingId& recording, SessionLimits limits,
                                                 const std::string& owner_key) {
    std::shared_ptr<Session> session(new Session(std::move(id), std::move(stream_path), limits));
    session->recording_ = recording;
    session->info_.recording = recording_hex(recording);
    session->writer_ = TRY(wire::SessionWriter::create(session->stream_path_));
    if (!owner_key.empty()) {
        session->owner_key_ = owner_key;
        session->store_.set_owner(owner_key);
        TRY(session->writer_->append(realtime_ns(), wire::Flag::reply, link_record(owner_key)));
    }
    session->attached_ = true;  // an agent is sending its first batch; attach_agent() adds its address
    return session;
}

Result<std::shared_ptr<Session>> Session::load(std::string id, std::string stream_path, SessionLimits limits,
                                               const OnPartial& on_partial) {
    std::shared_ptr<Session> session(new Session(std::move(id), std::move(stream_path), limits));
    session->reading_ = true;
    TRY(session->read_stream([&](const Session&) {
        if (on_partial) on_partial(session);
    }));
    return session;
}

Result<bool> Session::read_stream(const std::function<void(const Session&)>& on_partial) {
    wire::SessionScanner scanner = TRY(wire::SessionScanner::open(stream_path_));
    const std::lock_guard lock(ingest_mutex_);
    auto slice_began = std::chrono::steady_clock::now();
    std::uint64_t doubtful_bytes = 0;  // of frames with unknown flags since the last batch
    while (const auto record = TRY(scanner.next())) {
        if (!is_known(record->frame.flag)) doubtful_bytes += record->size_bytes;
        if (record->frame.flag == wire::Flag::batch) {
            // If batches are missing here, these frames were the batches, with damaged flags.
            const auto header = wire::peek_header(as_bytes_view(record->frame.payload));
            if (header && doubtful_bytes != 0 && sequence_.classify(*header) == Sequence::Kind::gap)
                damage_.skip(doubtful_bytes, last_batch_ns_);
            doubtful_bytes = 0;
        }
        replay_record(*record);
        size_bytes_ = scanner.offset();
        if (std::chrono::steady_clock::now() - slice_began < read_slice || appended_seq_ == 0) continue;
        {
            const std::lock_guard info_lock(info_mutex_);
            info_.reading = ReadProgress{scanner.offset(), scanner.size_bytes()};
        }
        publish(false);
        on_partial(*this);
        slice_began = std::chrono::steady_clock::now();
    }
    // An incomplete record at the end of a file that is still being written is not damage: the rest follows.
    const bool growing = scanner.tail().kind == wire::SessionTail::Kind::cut && wire::is_being_written(stream_path_);
    damage_.finish(growing ? wire::SessionTail{} : scanner.tail(), scanner.size_bytes(), last_batch_ns_, ended_);
    if (appended_seq_ == 0 && damage_.unread_bytes() != 0 && scanner.tail().kind != wire::SessionTail::Kind::cut)
        return fail(ErrorCode::invalid, wire::unreadable_session(stream_path_, scanner.size_bytes()));
    synced_seq_ = appended_seq_.load();
    size_bytes_ = scanner.offset();
    {
        const std::lock_guard info_lock(info_mutex_);
        info_.reading.reset();
        detached_at_ = std::chrono::steady_clock::now() -
                       std::chrono::nanoseconds(std::max<std::int64_t>(0, realtime_ns() - last_arrival_ns_));
    }
    reading_ = false;
    publish(true);
    publish_damage();
    return true;
}

void Session::replay_record(const wire::SoundRecord& record) {
    const wire::Frame& frame = record.frame;
    if (record.unread_bytes != 0) damage_.skip(record.unread_bytes, last_batch_ns_);
    if (std::exchange(first_record_, false) && frame.flag == wire::Flag::reply)
        if (const auto link = wire::parse_object(frame.payload); link && wire::text_member(*link, "type") == "link")
            store_.set_owner(owner_key_ = wire::text_member(*link, "key"));
    if (frame.flag != wire::Flag::batch) return record_frame(frame.flag, frame.payload, record.arrival_ns);
    const auto result = ingest_locked(frame.flag, frame.payload, record.arrival_ns,
                                      record.unread_bytes != 0 ? Origin::after_damage : Origin::file);
    // Only accepted batches are in the file, so a refused one is damaged.
    if (!result || !result->stored)
        damage_.skip(record.size_bytes, last_batch_ns_);
    else
        last_batch_ns_ = result->monotonic_ns;
}

void Session::publish_damage() {
    std::uint64_t unusable = 0;
    {
        const std::shared_lock lock(store_mutex_);
        for (const profile::LossTotal& loss : store_.losses())
            if (loss.reason == wire::LossReason::batches_missing) unusable += loss.count;
    }
    const std::lock_guard lock(info_mutex_);
    damage_notices_ = damage_.notices(info_.start_ns, unusable);
    info_.lost_at_least = damage_.hides_samples();
}

Result<bool> Session::make_writable() {
    const std::lock_guard lock(ingest_mutex_);
    if (writer_) return true;
    writer_ = TRY(wire::SessionWriter::append_to(stream_path_));
    damage_.clear_tail();
    publish_damage();
    return true;
}

Result<Session::IngestResult> Session::ingest(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
    const std::lock_guard lock(ingest_mutex_);
    return ingest_locked(flag, payload, arrival_ns, Origin::link);
}

Result<Session::IngestResult> Session::ingest_locked(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns,
                                                     Origin origin) {
    const bool from_file = origin != Origin::link;
    const std::string bytes = TRY(wire::batch_bytes(flag, as_bytes_view(payload)));
    const wire::BatchHeader header = TRY(wire::peek_header(as_bytes_view(bytes)));
    if (from_file && appended_seq_ == 0) {
        recording_ = header.recording_id;
        info_.recording = recording_hex(recording_);
    }
    if (header.recording_id != recording_) return fail(ErrorCode::not_found, "a batch of another recording");
    IngestResult result;
    result.seq = header.seq;
    const Sequence::Kind kind = sequence_.classify(header);
    switch (kind) {
        case Sequence::Kind::duplicate:
            result.urgent = true;
            return result;
        case Sequence::Kind::malformed:
            return fail(ErrorCode::invalid, "a batch without sequence number or epoch");
        case Sequence::Kind::stale:
            return fail(ErrorCode::invalid,
                        fmt::format("batch {} is of epoch {}, which is over", header.seq, header.epoch));
        case Sequence::Kind::overlap:
            return fail(ErrorCode::invalid, fmt::format("batch {} to {} overlaps batch {}, which is stored already",
                                                        header.first_seq, header.seq, sequence_.last_seq()));
        case Sequence::Kind::next:
        case Sequence::Kind::gap:
            break;
    }
    wire::EventPeriods periods;
    if (header.epoch == sequence_.epoch()) periods = periods_;
    profile::GapRepair repair = repair_;
    repair.begin(header.epoch, kind == Sequence::Kind::gap);
    wire::Batch batch = TRY(wire::decode(as_bytes_view(bytes), periods, repair.events()));
    if (!from_file) TRY(write_record(flag, payload, arrival_ns));

    periods_ = std::move(periods);
    const std::uint64_t missing = sequence_.advance(header);
    std::optional<MissingTime> missing_time;
    if (damage_.open())
        missing_time = damage_.close(first_sample_ns(batch, last_batch_ns_), missing);
    else if (missing > 0)
        set_notice("batches-missing",
                   fmt::format("{} batches of this recording never arrived here; their samples are not shown.",
                               sequence_.missing() - damage_.missing_batches()),
                   "");
    repair.apply(batch);
    appended_seq_ = header.seq;
    result.stored = true;
    result.monotonic_ns = batch.monotonic_ns;
    result.clock_difference_ns = arrival_ns - batch.realtime_ns;
    result.stats = batch.agent;
    result.end = batch.end;
    Result<bool> applied = true;
    bool filled = false;
    {
        const std::unique_lock store_lock(store_mutex_);
        if (missing_time && missing_time->start_ns != 0)
            store_.note_missing(missing_time->start_ns, missing_time->end_ns);
        const bool was_full = store_.tables_full();
        applied = store_.apply(batch);
        filled = store_.tables_full() && !was_full;
        if (store_.row_count() != 0 && (first_row_ns_ == 0 || store_.first_ns() < first_row_ns_))
            first_row_ns_ = store_.first_ns();
        result.same_boot = store_.recording() && !own_boot_id().empty() && store_.recording()->boot_id == own_boot_id();
    }
    if (applied) {
        repair_ = std::move(repair);
    } else {
        repair_.begin(header.epoch, true);  // the entries of a refused batch are missing
        set_notice("batch-refused",
                   fmt::format("{} batches refer to something that was never sent and are not shown (last: {}).",
                               ++refused_batches_, applied.error().message),
                   "");
    }
    if (filled) {
        limit_reached(Limit::table_bytes);
        set_notice("session-full",
                   "Names and stacks of this session fill the memory that it may use: later samples are kept in its "
                   "file and counted, but not shown.",
                   "--table-memory SIZE of flamewire-server, then open it again");
    }
    update_clock(batch, arrival_ns, origin);
    if (batch.end) ended_ = true;
    if (!from_file) publish(result.end.has_value());
    result.urgent = batch.end.has_value() || (batch.agent && batch.agent->spool_bytes >= urgent_spool_bytes);
    return result;
}

Result<bool> Session::write_record(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
    const auto refused = [this](const Error& error) {
        set_notice(
            "disk",
            fmt::format("The session cannot be written: {}. The agent keeps its samples meanwhile.", error.message),
            std::string(disk_remedy(error.errno_value)));
        return std::unexpected(Error{ErrorCode::busy, error.errno_value, error.message});
    };
    if (!writer_) {
        auto opened = wire::SessionWriter::append_to(stream_path_);
        if (!opened) return refused(opened.error());
        writer_ = std::move(*opened);
        damage_.clear_tail();
        publish_damage();
    }
    if (writer_->size_bytes() + payload.size() > max_stream_bytes_) {
        if (!std::exchange(stream_full_reported_, true)) limit_reached(Limit::session_bytes);
        return refused(Error{ErrorCode::busy, 0,
                             fmt::format("its file has {} MiB, which is all that a session gets: stop it, or start the "
                                         "server with more --session-size",
                                         writer_->size_bytes() >> 20)});
    }
    stream_full_reported_ = false;
    if (auto appended = writer_->append(arrival_ns, flag, payload); !appended) return refused(appended.error());
    size_bytes_ = writer_->size_bytes();
    set_notice("disk", "", "");
    return true;
}

Result<bool> Session::append(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
    // Such a frame would count as damage when the file is read again.
    if ((flag == wire::Flag::reply || flag == wire::Flag::metrics) && !wire::parse_object(payload))
        return fail(ErrorCode::invalid, "a frame that is not a JSON object");
    const std::lock_guard lock(ingest_mutex_);
    record_frame(flag, payload, arrival_ns);
    return write_record(flag, payload, arrival_ns);
}

void Session::record_frame(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
    if (flag == wire::Flag::metrics) (void)health_.add(payload);
    if (flag != wire::Flag::reply || appended_seq_ == 0) return;
    const auto hello = wire::parse_object(payload);
    if (!hello || wire::text_member(*hello, "type") != "hello") return;
    std::uint64_t away_ns = 0, back_ns = 0;
    {
        const std::lock_guard lock(info_mutex_);
        // The time of the reconnect on the target's own clock.
        const std::int64_t at = arrival_ns - clock_difference_ns_ - realtime_minus_monotonic_ns_;
        away_ns = last_closed_ns_;
        back_ns = std::max(away_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(at, 0)));
    }
    const std::unique_lock lock(store_mutex_);
    store_.note_reconnect(away_ns, back_ns);
}

Result<std::uint64_t> Session::sync() {
    int fd = -1;
    std::uint64_t seq = 0;
    {
        const std::lock_guard lock(ingest_mutex_);
        if (!writer_) return synced_seq_.load();
        fd = writer_->fd();
        seq = appended_seq_;
    }
    // Sync without the lock, so that batches can continue. The writer lives as long as the session.
    if (::fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS) {
        const int error = errno;
        set_notice("disk",
                   fmt::format("The session cannot be made durable: {}.", std::generic_category().message(error)),
                   std::string(disk_remedy(error)));
        return fail_errno("fdatasync of " + stream_path_, error);
    }
    std::uint64_t before = synced_seq_;
    while (before < seq && !synced_seq_.compare_exchange_weak(before, seq)) {
    }
    return seq;
}

std::uint64_t Session::last_seq() const { return appended_seq_; }

void Session::set_fetch(profile::ModuleId module, ModuleFetch fetch) {
    const std::lock_guard lock(info_mutex_);
    fetches_[module] = std::move(fetch);
}

std::map<profile::ModuleId, ModuleFetch> Session::fetches() const {
    const std::lock_guard lock(info_mutex_);
    return fetches_;
}

void Session::source_changed() {
    {
        const std::unique_lock lock(store_mutex_);
        store_.touch();
    }
    publish(true);
}

void Session::set_debug_fetch(profile::ModuleId module, ModuleFetch fetch) {
    const std::lock_guard lock(info_mutex_);
    debug_fetches_[module] = std::move(fetch);
}

std::map<profile::ModuleId, ModuleFetch> Session::debug_fetches() const {
    const std::lock_guard lock(info_mutex_);
    return debug_fetches_;
}

std::map<profile::ModuleId, symbol::ModuleReport> Session::module_reports() const {
    const std::lock_guard lock(info_mutex_);
    return reports_;
}

void Session::update_clock(const wire::Batch& batch, std::int64_t arrival_ns, Origin origin) {
    const std::lock_guard lock(info_mutex_);
    if (origin != Origin::after_damage) {
        const std::int64_t difference = arrival_ns - batch.realtime_ns;
        if (!clock_difference_known_ || difference < clock_difference_ns_) clock_difference_ns_ = difference;
        clock_difference_known_ = true;
        last_arrival_ns_ = arrival_ns;
    }
    if (!clock_known_) realtime_minus_monotonic_ns_ = batch.realtime_ns - static_cast<std::int64_t>(batch.monotonic_ns);
    clock_known_ = true;
    last_closed_ns_ = batch.monotonic_ns;
    ++info_.batches;
}

SessionState Session::state_locked() const {
    if (ended_) return SessionState::ended;
    if (attached_) return paused_ ? SessionState::paused : SessionState::live;
    const bool may_return = !imported_ && std::chrono::steady_clock::now() - detached_at_ < reconnect_timeout;
    return may_return ? SessionState::waiting : SessionState::ended;
}

SessionState Session::state() const {
    const std::lock_guard lock(info_mutex_);
    return state_locked();
}

SessionInfo Session::info() const {
    const std::lock_guard lock(info_mutex_);
    SessionInfo info = info_;
    info.state = state_locked();
    info.health_version = health_.version();
    if (info.state == SessionState::ended && info.end_reason.empty() && !info.reading)
        info.end_reason = "the agent disconnected";
    // Notices about missing data come first.
    info.notices.insert(info.notices.begin(), damage_notices_.begin(), damage_notices_.end());
    info.notices.insert(info.notices.end(), server_notices_.begin(), server_notices_.end());
    return info;
}

std::uint64_t Session::start_ns() const {
    const std::lock_guard lock(info_mutex_);
    return info_.start_ns;
}

void Session::attach_agent(const std::string& address) {
    const std::lock_guard lock(info_mutex_);
    info_.agent = address;
    attached_ = true;
    paused_ = false;
}

void Session::detach_agent() {
    const std::lock_guard lock(info_mutex_);
    attached_ = false;
    detached_at_ = std::chrono::steady_clock::now();
}

void Session::set_imported() {
    const std::lock_guard lock(info_mutex_);
    imported_ = true;
}

void Session::set_paused(bool paused) { paused_ = paused; }

void Session::set_notice(const std::string& code, const std::string& text, const std::string& remedy) {
    const std::lock_guard lock(info_mutex_);
    std::erase_if(server_notices_, [&](const wire::Notice& notice) { return notice.code == code; });
    if (!text.empty()) server_notices_.push_back({code, text, remedy});
}

void Session::set_label(Label label) {
    const std::lock_guard lock(info_mutex_);
    info_.label = std::move(label);
}

void Session::publish(bool thorough) {
    // Fill the copy without info_mutex_, so that readers of info() never wait for the store.
    const auto now = std::chrono::steady_clock::now();
    SessionInfo fresh;
    {
        const std::lock_guard lock(info_mutex_);
        thorough = thorough || now - thorough_at_ >= thorough_every;
        if (thorough) thorough_at_ = now;
        fresh = info_;
    }
    fill_from_store(fresh, thorough);
    const std::lock_guard lock(info_mutex_);
    fresh.batches = info_.batches;
    fresh.agent = info_.agent;
    fresh.label = info_.label;
    fresh.reading = info_.reading;
    // A slower publisher must not restore an older state.
    if (fresh.data_version < info_.data_version) return;
    if (clock_known_) {
        fresh.target_started_ns = static_cast<std::int64_t>(fresh.start_ns) + realtime_minus_monotonic_ns_;
        fresh.started_ns = fresh.target_started_ns + clock_difference_ns_;
    }
    info_ = std::move(fresh);
}

void Session::fill_from_store(SessionInfo& info, bool thorough) {
    const std::shared_lock lock(store_mutex_);
    info.size_bytes = size_bytes_;
    info.data_version = store_.version();
    if (const auto& recording = store_.recording()) {
        info.target = recording->target;
        info.host = recording->host;
        info.arch = recording->arch;
        info.kernel_release = recording->kernel_release;
        info.agent_version = recording->agent_version;
        info.pids = recording->pids;
        info.frequency_hz = recording->frequency_hz;
        info.start_ns = recording->start_ns;
    }
    if (store_.row_count() != 0) {
        // The bucket of the first sample can start before the recording did.
        info.start_ns = info.start_ns == 0 ? first_row_ns_.load() : std::min(info.start_ns, first_row_ns_.load());
        info.newest_ns = store_.end_ns();
    }
    const auto ms = [&](std::uint64_t ns) {
        return ns <= info.start_ns ? 0.0 : static_cast<double>(ns - info.start_ns) / 1e6;
    };
    info.duration_ms = ms(store_.known_until_ns());
    info.events.clear();
    info.samples = store_.total(0).samples;
    info.pending_names = store_.pending_locations();
    const auto events = store_.events();
    for (profile::EventId id = 1; id < events.size(); ++id) {
        const profile::Weight total = store_.total(id);
        info.events.push_back({events[id].name, events[id].unit, total.samples, total.weight, events[id].frequency_hz,
                               events[id].period});
    }
    info.losses.clear();
    info.lost = 0;
    for (const profile::LossTotal& loss : store_.losses()) {
        const bool dropped = loss.by_store && loss.reason == wire::LossReason::unknown;
        LossInfo out{dropped ? "memory_limit" : std::string(loss_reason_name(loss.reason)),
                     loss.count,
                     is_lost(loss.reason),
                     loss.event < events.size() ? events[loss.event].name : "",
                     ms(loss.first_ns),
                     ms(loss.last_ns)};
        if (out.lost) info.lost += out.count;
        info.losses.push_back(std::move(out));
    }
    info.unwinding = unwinding_of(store_);
    info.notices = current_notices(store_);
    if (const auto& end = store_.end()) {
        info.end_reason = end->reason;
        info.exit_code = end->exit_code;
    }
    Retention retention;
    retention.rows = store_.row_count();
    retention.memory_bytes = store_.memory_bytes();
    for (const profile::Coverage& stretch : store_.coverage())
        if (!stretch.whole) retention.whole_from_ms = ms(stretch.end_ns);
    for (const profile::RowChunk& chunk : store_.tables().rows.chunks())
        if (chunk.level != 0) retention.coarse_rows += chunk.size();
    info.retention = retention;
    if (thorough && info.samples != 0) {
        const profile::Weight unresolved = profile::unresolved(store_, {});
        info.unresolved_percent = 100.0 * static_cast<double>(unresolved.samples) / static_cast<double>(info.samples);
    }
}

}  // namespace flamewire::server
