#include "server/session/session_stream.h"

#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "server/limits.h"
#include "server/session/disk_remedy.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

// If the agent's spool holds more than this, acknowledge at once. The spool has 8 MiB by default, and at most half of
// it is in flight.
constexpr std::uint64_t urgent_spool_bytes = std::uint64_t{1} << 20;
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

// Why a batch that is neither new nor a duplicate is not stored.
std::unexpected<Error> not_the_next(Sequence::Kind kind, const wire::BatchHeader& header, std::uint64_t last_seq) {
    if (kind == Sequence::Kind::malformed) return fail(ErrorCode::invalid, "a batch without sequence number or epoch");
    if (kind == Sequence::Kind::stale)
        return fail(ErrorCode::invalid,
                    fmt::format("batch {} is of epoch {}, which is over", header.seq, header.epoch));
    return fail(ErrorCode::invalid, fmt::format("batch {} to {} overlaps batch {}, which is stored already",
                                                header.first_seq, header.seq, last_seq));
}

}  // namespace

void SessionStream::set_recording(const wire::RecordingId& recording) {
    recording_ = recording;
    status_.set_recording(to_hex(std::as_bytes(std::span(recording))));
}

Result<bool> SessionStream::create(const wire::RecordingId& recording, const std::string& owner_key) {
    const std::lock_guard lock(mutex_);
    set_recording(recording);
    writer_ = TRY(wire::SessionWriter::create(path_));
    if (owner_key.empty()) return true;
    owner_key_ = owner_key;
    store_.change([&](profile::Store& store) { store.set_owner(owner_key); });
    TRY(writer_->append(realtime_ns(), wire::Flag::reply, link_record(owner_key)));
    return true;
}

Result<bool> SessionStream::replay(const std::function<void()>& on_partial) {
    wire::SessionScanner scanner = TRY(wire::SessionScanner::open(path_));
    const std::lock_guard lock(mutex_);
    auto slice_began = std::chrono::steady_clock::now();
    std::uint64_t doubtful_bytes = 0;
    while (const auto record = TRY(scanner.next())) {
        check_flags(*record, doubtful_bytes);
        replay_record(*record);
        status_.set_size_bytes(scanner.offset());
        if (std::chrono::steady_clock::now() - slice_began < read_slice || appended_seq_ == 0) continue;
        status_.set_read_progress({scanner.offset(), scanner.size_bytes()});
        status_.publish(false);
        on_partial();
        slice_began = std::chrono::steady_clock::now();
    }
    return finish_replay(scanner);
}

// `doubtful_bytes`: of frames with unknown flags since the last batch. If batches are missing after them, these frames
// were the batches, with damaged flags.
void SessionStream::check_flags(const wire::SoundRecord& record, std::uint64_t& doubtful_bytes) {
    if (!is_known(record.frame.flag)) doubtful_bytes += record.size_bytes;
    if (record.frame.flag != wire::Flag::batch) return;
    const auto header = wire::peek_header(as_bytes_view(record.frame.payload));
    if (header && doubtful_bytes != 0 && decoder_.sequence().classify(*header) == Sequence::Kind::gap)
        damage_.skip(doubtful_bytes, last_batch_ns_);
    doubtful_bytes = 0;
}

void SessionStream::replay_record(const wire::SoundRecord& record) {
    const wire::Frame& frame = record.frame;
    if (record.unread_bytes != 0) damage_.skip(record.unread_bytes, last_batch_ns_);
    if (std::exchange(first_record_, false) && frame.flag == wire::Flag::reply)
        if (const auto link = wire::parse_object(frame.payload); link && wire::text_member(*link, "type") == "link") {
            owner_key_ = wire::text_member(*link, "key");
            store_.change([&](profile::Store& store) { store.set_owner(owner_key_); });
        }
    if (frame.flag != wire::Flag::batch) return record_frame(frame.flag, frame.payload, record.arrival_ns);
    const auto result = ingest_locked(frame.flag, frame.payload, record.arrival_ns,
                                      record.unread_bytes != 0 ? Origin::after_damage : Origin::file);
    // Only accepted batches are in the file, so a refused one is damaged.
    if (!result || !result->stored)
        damage_.skip(record.size_bytes, last_batch_ns_);
    else
        last_batch_ns_ = result->monotonic_ns;
}

Result<bool> SessionStream::finish_replay(const wire::SessionScanner& scanner) {
    // An incomplete record at the end of a file that is still being written is not damage: the rest follows.
    const bool growing = scanner.tail().kind == wire::SessionTail::Kind::cut && wire::is_being_written(path_);
    damage_.finish(growing ? wire::SessionTail{} : scanner.tail(), scanner.size_bytes(), last_batch_ns_,
                   status_.ended());
    if (appended_seq_ == 0 && damage_.unread_bytes() != 0 && scanner.tail().kind != wire::SessionTail::Kind::cut)
        return fail(ErrorCode::invalid, wire::unreadable_session(path_, scanner.size_bytes()));
    synced_seq_ = appended_seq_.load();
    status_.set_size_bytes(scanner.offset());
    status_.end_reading();
    status_.publish(true);
    publish_damage();
    return true;
}

void SessionStream::publish_damage() {
    const std::uint64_t unusable = store_.read([](const profile::Store& store) {
        std::uint64_t count = 0;
        for (const profile::LossTotal& loss : store.losses())
            if (loss.reason == wire::LossReason::batches_missing) count += loss.count;
        return count;
    });
    status_.set_damage(damage_, unusable);
}

Result<bool> SessionStream::make_writable() {
    const std::lock_guard lock(mutex_);
    return open_writer();
}

Result<bool> SessionStream::open_writer() {
    if (writer_) return true;
    writer_ = TRY(wire::SessionWriter::append_to(path_));
    damage_.clear_tail();
    publish_damage();
    return true;
}

Result<IngestResult> SessionStream::ingest(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
    const std::lock_guard lock(mutex_);
    return ingest_locked(flag, payload, arrival_ns, Origin::link);
}

Result<IngestResult> SessionStream::ingest_locked(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns,
                                                  Origin origin) {
    const bool from_file = origin != Origin::link;
    const std::string bytes = TRY(wire::batch_bytes(flag, as_bytes_view(payload)));
    const wire::BatchHeader header = TRY(wire::peek_header(as_bytes_view(bytes)));
    if (from_file && appended_seq_ == 0) set_recording(header.recording_id);
    if (header.recording_id != recording_) return fail(ErrorCode::not_found, "a batch of another recording");
    IngestResult result;
    result.seq = header.seq;
    const Sequence::Kind kind = decoder_.sequence().classify(header);
    if (kind == Sequence::Kind::duplicate) {
        result.urgent = true;
        return result;
    }
    if (kind != Sequence::Kind::next && kind != Sequence::Kind::gap)
        return not_the_next(kind, header, decoder_.sequence().last_seq());
    BatchDecoder::Decoded decoded = TRY(decoder_.decode(header, as_bytes_view(bytes)));
    if (!from_file) TRY(write_record(flag, payload, arrival_ns));
    accept(decoded, result);

    const wire::Batch& batch = decoded.batch;
    result.clock_difference_ns = arrival_ns - batch.realtime_ns;
    status_.add_batch(batch, arrival_ns, origin != Origin::after_damage);
    if (!from_file) status_.publish(batch.end.has_value());
    result.urgent = batch.end.has_value() || (batch.agent && batch.agent->spool_bytes >= urgent_spool_bytes);
    return result;
}

// The batch is in the file: applies it to the store, and reports what is missing or does not fit.
void SessionStream::accept(BatchDecoder::Decoded& decoded, IngestResult& result) {
    std::uint64_t first_ns = 0;
    if (damage_.open()) first_ns = first_sample_ns(decoded.batch, last_batch_ns_);
    const std::uint64_t missing = decoder_.accept(decoded);
    std::optional<MissingTime> missing_time;
    if (damage_.open())
        missing_time = damage_.close(first_ns, missing);
    else if (missing > 0)
        status_.set_notice("batches-missing",
                           fmt::format("{} batches of this recording never arrived here; their samples are not shown.",
                                       decoder_.sequence().missing() - damage_.missing_batches()),
                           "");
    appended_seq_ = decoded.header.seq;
    const SessionStore::Applied applied = store_.apply(decoded.batch, missing_time);
    decoder_.finish(decoded, applied.result.has_value());
    if (!applied.result)
        status_.set_notice("batch-refused",
                           fmt::format("{} batches refer to something that was never sent and are not shown (last: "
                                       "{}).",
                                       ++refused_batches_, applied.result.error().message),
                           "");
    if (applied.filled) {
        limit_reached(Limit::table_bytes);
        status_.set_notice("session-full",
                           "Names and stacks of this session fill the memory that it may use: later samples are kept "
                           "in its file and counted, but not shown.",
                           "--table-memory SIZE of flamewire-server, then open it again");
    }
    result.stored = true;
    result.monotonic_ns = decoded.batch.monotonic_ns;
    result.stats = decoded.batch.agent;
    result.end = decoded.batch.end;
    result.same_boot = applied.same_boot;
}

std::unexpected<Error> SessionStream::refuse(const Error& error) {
    status_.set_notice(
        "disk", fmt::format("The session cannot be written: {}. The agent keeps its samples meanwhile.", error.message),
        std::string(disk_remedy(error.errno_value)));
    return std::unexpected(Error{ErrorCode::busy, error.errno_value, error.message});
}

Result<bool> SessionStream::write_record(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
    if (const auto opened = open_writer(); !opened) return refuse(opened.error());
    if (writer_->size_bytes() + payload.size() > max_bytes_) {
        if (!std::exchange(stream_full_reported_, true)) limit_reached(Limit::session_bytes);
        return refuse(Error{ErrorCode::busy, 0,
                            fmt::format("its file has {} MiB, which is all that a session gets: stop it, or start the "
                                        "server with more --session-size",
                                        writer_->size_bytes() >> 20)});
    }
    stream_full_reported_ = false;
    if (auto appended = writer_->append(arrival_ns, flag, payload); !appended) return refuse(appended.error());
    status_.set_size_bytes(writer_->size_bytes());
    status_.set_notice("disk", "", "");
    return true;
}

Result<bool> SessionStream::append(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
    // Such a frame would count as damage when the file is read again.
    if ((flag == wire::Flag::reply || flag == wire::Flag::metrics) && !wire::parse_object(payload))
        return fail(ErrorCode::invalid, "a frame that is not a JSON object");
    const std::lock_guard lock(mutex_);
    record_frame(flag, payload, arrival_ns);
    return write_record(flag, payload, arrival_ns);
}

void SessionStream::record_frame(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns) {
    if (flag == wire::Flag::metrics) (void)health_.add(payload);
    if (flag != wire::Flag::reply || appended_seq_ == 0) return;
    const auto hello = wire::parse_object(payload);
    if (!hello || wire::text_member(*hello, "type") != "hello") return;
    const MissingTime away = status_.time_disconnected(arrival_ns);
    store_.change([&](profile::Store& store) { store.note_reconnect(away.start_ns, away.end_ns); });
}

Result<std::uint64_t> SessionStream::sync() {
    int fd = -1;
    std::uint64_t seq = 0;
    {
        const std::lock_guard lock(mutex_);
        if (!writer_) return synced_seq_.load();
        fd = writer_->fd();
        seq = appended_seq_;
    }
    // Sync without the lock, so that batches can continue. The writer lives as long as the session.
    if (::fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS) {
        const int error = errno;
        status_.set_notice(
            "disk", fmt::format("The session cannot be made durable: {}.", std::generic_category().message(error)),
            std::string(disk_remedy(error)));
        return fail_errno(fmt::format("fdatasync of {}", path_), error);
    }
    std::uint64_t before = synced_seq_;
    while (before < seq && !synced_seq_.compare_exchange_weak(before, seq)) {
    }
    return seq;
}

}  // namespace flamewire::server
