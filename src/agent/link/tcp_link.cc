#include "agent/link/tcp_link.h"

#include <asio/post.hpp>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string_view>

#include "agent/log.h"
#include "base/clock.h"
#include "secure/this_machine.h"
#include "wire/frame.h"

namespace flamewire::agent {

using asio::ip::tcp;

namespace {

constexpr std::size_t max_queue_batches =
    32;  // 8 s of batches: the link thread only encodes, so only a stalled machine fills the queue
constexpr std::size_t burst_bytes = 64U << 10;  // copied into the socket's buffer at a time
// Health frames that wait for the link thread. Only a stalled machine reaches this limit.
constexpr std::uint32_t max_waiting_metrics = 64;
constexpr std::uint32_t answer_ms = 10'000;
constexpr std::string_view no_key =
    "a pairing code is needed: give the code from the line that the server prints for agents (--pair "
    "or --pair-file), or start both with --insecure";
constexpr std::chrono::seconds key_check_interval{2};
// With listen: connections that have not answered the hello yet. The first ones are closed for new ones.
constexpr std::size_t max_candidates = 32;

bool is_here(const tcp::socket& socket) {
    asio::error_code gone;
    const asio::ip::address address = socket.remote_endpoint(gone).address();
    return !gone && secure::on_this_machine(address);
}

}  // namespace

Result<bool> TcpLink::listen() {
    status_.listen_port = TRY(acceptor_.listen(options_.host, options_.port));
    return true;
}

void TcpLink::run() {
    if (options_.listen) {
        acceptor_.accept();
        check_key_later();
    } else {
        dialer_.dial();
    }
    // Only the main thread handles signals.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { io_.run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void TcpLink::reply(std::string json) {
    asio::post(io_, [this, json = std::move(json)] {
        const ConnectionPtr to = current_ ? current_ : candidates_.empty() ? nullptr : candidates_.back();
        if (to) to->write(wire::encode_frame(wire::Flag::reply, json));
    });
}

// Health frames do not wait behind bytes that the server does not read: the next frame has newer data.
bool TcpLink::takes_metrics() const { return current_ && current_->ready && current_->waiting_bytes() < burst_bytes; }

void TcpLink::send_metrics(std::string json) {
    if (waiting_metrics_.fetch_add(1) >= max_waiting_metrics) {
        --waiting_metrics_;
        ++dropped_metrics_;
        return;
    }
    asio::post(io_, [this, json = std::move(json)] {
        --waiting_metrics_;
        if (takes_metrics())
            current_->write(wire::encode_frame(wire::Flag::metrics, json));
        else
            ++dropped_metrics_;
    });
}

bool TcpLink::send_module_chunk(std::string payload) {
    if (chunk_waits_.exchange(true)) return false;
    asio::post(io_, [this, payload = std::move(payload)]() mutable {
        chunk_ = std::move(payload);
        if (!current_ || !current_->ready) {
            chunk_.clear();
            chunk_waits_ = false;
        }
        pump();
    });
    return true;
}

// Sends only after the socket has accepted everything else, so that a batch waits behind at most one chunk.
void TcpLink::pump_chunk() {
    if (chunk_.empty() || !current_ || !current_->ready || current_->writing() || current_->waiting_bytes() != 0)
        return;
    current_->write(wire::encode_frame(wire::Flag::module_chunk, chunk_));
    chunk_ = {};
    chunk_waits_ = false;
}

void TcpLink::begin_recording(const wire::RecordingId& id) {
    const std::lock_guard lock(mutex_);
    enqueue({id, {}, {}});
}

bool TcpLink::push(wire::Batch& batch, const wire::EventPeriods& periods) {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= max_queue_batches) return false;
    enqueue({std::nullopt, std::move(batch), periods});
    return true;
}

void TcpLink::enqueue(Item item) {
    queue_.push_back(std::move(item));
    if (scheduled_) return;
    scheduled_ = true;
    asio::post(io_, [this] { take_queue(); });
}

void TcpLink::take_queue() {
    {
        const std::lock_guard lock(mutex_);
        std::swap(queue_, taken_);
        scheduled_ = false;
        taking_ = true;
    }
    for (Item& item : taken_) {
        if (item.begin)
            recordings_.begin(*item.begin);
        else
            recordings_.push(std::move(item.batch), item.periods);
    }
    taken_.clear();
    recordings_.keep_within_bound();
    pump();
    {
        const std::lock_guard lock(mutex_);
        taking_ = false;
    }
    publish();
}

void TcpLink::send_hello(const ConnectionPtr& connection) {
    wire::Hello hello = callbacks_.hello();
    hello.recording.reset();
    recordings_.drop_finished();
    connection->recording.reset();
    if (!recordings_.empty()) {
        const KeptRecordings::Kept& kept = recordings_.sending();
        const std::uint64_t last = kept.spool.last_seq();
        hello.recording =
            wire::Hello::Kept{kept.id, kept.spool.empty() ? last + 1 : kept.spool.batches().front().first_seq, last};
        connection->recording = kept.id;
    }
    connection->ready = false;
    connection->expect_answer(answer_ms);
    connection->write(wire::encode_frame(wire::Flag::reply, wire::encode_hello(hello)));
}

void TcpLink::on_frame(const ConnectionPtr& connection, const wire::Frame& frame) {
    if (frame.flag == wire::Flag::acknowledgement) {
        const Result<wire::Ack> ack = wire::parse_ack(frame.payload);
        if (!ack) return connection->fail_with("it sent a bad acknowledgment: " + ack.error().message);
        if (connection->ready)
            on_acknowledgement(connection, *ack);
        else
            on_answer(connection, *ack);
        publish();
    } else if (frame.flag == wire::Flag::command) {
        Result<wire::Command> command = wire::parse_command(frame.payload);
        if (!command) return connection->fail_with("it sent a bad command: " + command.error().message);
        callbacks_.command(std::move(*command));
    } else if (frame.flag == wire::Flag::refusal) {
        connection->fail_with("it refuses: " + wire::refusal_text(frame.payload));
    }
    // Skip other flags, which belong to a newer protocol.
}

void TcpLink::on_acknowledgement(const ConnectionPtr& connection, const wire::Ack& ack) {
    if (connection != current_ || recordings_.empty() || ack.recording != recordings_.sending().id) return;
    recordings_.sending().spool.acknowledge(ack.seq);
    pump();
}

void TcpLink::on_answer(const ConnectionPtr& connection, const wire::Ack& ack) {
    if (ack.recording && ack.recording != connection->recording)
        return connection->fail_with("it acknowledged a different recording");
    connection->answered();
    connection->ready = true;
    dialer_.succeeded();
    std::erase(candidates_, connection);
    if (current_ != connection) {
        if (current_) {
            log("the server at {} takes over from {}", connection->peer(), current_->peer());
            sent_before_ += current_->sent_bytes();
            current_->close();
        } else {
            log("connected to {}{}", connection->peer(), connection->encrypted() ? "" : ", NOT ENCRYPTED");
        }
        current_ = connection;
    }
    if (!recordings_.empty() && connection->recording == recordings_.sending().id) {
        const bool new_epoch = recordings_.sending().spool.resume_after(ack.seq);
        if (new_epoch && recordings_.sends_newest() && callbacks_.new_epoch_wanted) callbacks_.new_epoch_wanted();
    }
    pump();
}

void TcpLink::on_closed(const ConnectionPtr& connection, const std::string& reason) {
    const bool was_ready = connection == current_;
    if (was_ready) {
        current_.reset();
        if (!chunk_.empty()) {
            chunk_ = {};
            chunk_waits_ = false;
        }
        log("the connection to {} ended: {}", connection->peer(), reason);
    }
    std::erase(candidates_, connection);
    if (options_.listen && connection->wrong_key()) {
        const std::uint64_t now_ns = monotonic_ns();
        if (const std::uint64_t more = turned_away_.take_omitted(now_ns))
            log("{} more were turned away within a minute", more);
        if (turned_away_.admits(now_ns)) log("{} was turned away: {}", connection->peer(), reason);
    }
    sent_before_ += connection->sent_bytes();
    if (!options_.listen) dialer_.again(was_ready, reason);
    publish();
}

// Sends as much as the socket accepts now.
void TcpLink::pump() {
    const ConnectionPtr to = current_;
    if (!to || !to->ready) return;
    pump_batches(to);
    pump_chunk();
}

void TcpLink::pump_batches(const ConnectionPtr& to) {
    recordings_.drop_finished();
    if (recordings_.empty()) return;
    KeptRecordings::Kept& kept = recordings_.sending();
    if (to->recording != kept.id) {
        // If parts of the recording were sent over another connection, ask the server what it has.
        if (kept.spool.ever_sent()) return send_hello(to);
        to->recording = kept.id;
    }
    // Sent batches cannot shrink any more, so at most half of the spool may be in flight.
    while (current_ == to && to->waiting_bytes() < burst_bytes && kept.spool.unsent() > 0 &&
           (kept.spool.in_flight_bytes() == 0 || kept.spool.in_flight_bytes() < options_.spool_bytes / 2))
        to->write(kept.spool.next()->frame);
}

void TcpLink::publish() {
    Status status;
    status.spool_bytes = recordings_.bytes();
    status.connected = current_ && current_->ready;
    if (current_) status.peer = current_->peer();
    if (!recordings_.empty()) status.acknowledged_seq = recordings_.newest().spool.acknowledged_seq();
    status.sent_bytes = sent_before_ + (current_ ? current_->sent_bytes() : 0);
    const std::lock_guard lock(mutex_);
    status.listen_port = status_.listen_port;
    status_ = std::move(status);
    kept_batches_ = recordings_.batches();
    changed_.notify_all();
}

Link::Status TcpLink::status() const {
    const std::lock_guard lock(mutex_);
    Status status = status_;
    status.queue_batches = static_cast<std::uint32_t>(queue_.size());
    status.dropped_metrics = dropped_metrics_;
    return status;
}

bool TcpLink::flush(std::uint32_t timeout_ms) {
    std::unique_lock lock(mutex_);
    const auto drained = [&] { return queue_.empty() && !taking_ && kept_batches_ == 0; };
    changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return stopped_ || drained(); });
    return drained();
}

void TcpLink::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
    }
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
        dialer_.stop();
        acceptor_.stop();
        key_timer_.cancel();
        if (current_) current_->close();
        for (const ConnectionPtr& candidate : candidates_) candidate->close();
        io_.stop();
    });
    thread_.join();
}

// If the agent listens, a new pairing code closes the connection that uses the old one.
void TcpLink::read_key() {
    if (options_.key_file.empty()) return;
    Result<secure::PairingKey> read = secure::read_pairing_file(options_.key_file);
    if (!read && !key_trouble_logged_) log("the pairing code was not changed: {}", read.error().message);
    key_trouble_logged_ = !read;
    if (!read || *read == options_.key) return;
    options_.key = *std::move(read);
    log("{} has another pairing code now", options_.key_file);
    if (options_.listen && current_ && current_->encrypted()) current_->fail_with("its pairing code was changed");
}

void TcpLink::check_key_later() {
    key_timer_.expires_after(key_check_interval);
    key_timer_.async_wait([this](asio::error_code cancelled) {
        if (cancelled) return;
        read_key();
        check_key_later();
    });
}

void TcpLink::accepted(tcp::socket socket) {
    if (candidates_.size() >= max_candidates) {
        // The first one that has not proved its key.
        auto closed = std::ranges::find_if(candidates_, [](const ConnectionPtr& one) { return !one->paired(); });
        if (closed == candidates_.end()) closed = candidates_.begin();
        (*closed)->close();
        candidates_.erase(closed);
    }
    // Every user of this machine can connect over loopback, so the key is required there, too.
    const auto plain = options_.insecure ? secure::Carrier::Plain::allowed : secure::Carrier::Plain::refused;
    const bool quick = options_.insecure && is_here(socket);
    adopt(std::move(socket),
          secure::Carrier::accepted(
              [this](std::string_view id) {
                  return options_.key && options_.key->id == id ? options_.key : std::nullopt;
              },
              plain),
          !quick);
}

void TcpLink::dialled(tcp::socket socket) {
    read_key();
    if (options_.key) {
        Result<secure::Carrier> carrier = secure::Carrier::dialled(*options_.key);
        if (!carrier) return dialer_.again(false, carrier.error().message);
        return adopt(std::move(socket), std::move(*carrier), true);
    }
    if (!options_.insecure) return dialer_.again(false, std::string(no_key));
    adopt(std::move(socket), secure::Carrier::plain(), true);
}

void TcpLink::adopt(tcp::socket socket, secure::Carrier carrier, bool patient) {
    const auto connection = std::make_shared<Connection>(std::move(socket), std::move(carrier), patient);
    candidates_.push_back(connection);
    const std::weak_ptr<Connection> weak = connection;
    const auto with = [weak](auto&& action) {
        if (const ConnectionPtr self = weak.lock()) action(self);
    };
    connection->start({
        .frame = [this,
                  with](const wire::Frame& frame) { with([&](const ConnectionPtr& self) { on_frame(self, frame); }); },
        .writable =
            [this] {
                pump();
                publish();
            },
        .closed = [this, with](
                      const std::string& reason) { with([&](const ConnectionPtr& self) { on_closed(self, reason); }); },
    });
    send_hello(connection);
}

Result<std::unique_ptr<Link>> Link::start(const LinkOptions& options, Callbacks callbacks) {
    auto link = std::make_unique<TcpLink>(options, std::move(callbacks));
    if (options.listen) {
        const Result<bool> listening = link->listen();
        if (!listening) return std::unexpected(listening.error());
    }
    link->run();
    return link;
}

}  // namespace flamewire::agent
