#include "agent/link/link.h"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "agent/link/connection.h"
#include "agent/link/dialer.h"
#include "agent/link/spool.h"
#include "base/clock.h"
#include "secure/attempts.h"
#include "secure/this_machine.h"
#include "wire/frame.h"

namespace flamewire::agent {
namespace {

using asio::ip::tcp;

constexpr std::size_t max_queue_batches =
    32;  // 8 s of batches: the link thread only encodes, so this is a machine that stands still
constexpr std::size_t burst_bytes = 64U << 10;  // copied into the socket's buffer at a time
// Device health that waits for the link thread: rounds of a machine that stands still.
constexpr std::uint32_t max_waiting_metrics = 64;
constexpr std::uint32_t answer_ms = 10'000;
constexpr std::string_view no_key_for_the_network =
    "it is reached over the network, and without a pairing code nothing is sent there: give the line that the server "
    "prints for agents (--pair or --pair-file), or --insecure";
constexpr std::chrono::seconds between_key_looks{2};
constexpr std::size_t max_candidates = 4;  // connections that have not answered the hello yet, when listening

bool is_here(const tcp::socket& socket) {
    asio::error_code gone;
    const asio::ip::address address = socket.remote_endpoint(gone).address();
    return !gone && secure::on_this_machine(address);
}

class TcpLink final : public Link {
public:
    TcpLink(const LinkOptions& options, Callbacks callbacks)
        : options_(options),
          callbacks_(std::move(callbacks)),
          work_(asio::make_work_guard(io_)),
          acceptor_(io_),
          accept_pause_(io_),
          key_look_(io_),
          dialer_(io_, options.host, options.port, options.retry_ms,
                  [this](tcp::socket socket) { dialled(std::move(socket)); }) {}
    ~TcpLink() override { stop(); }

    Result<bool> listen();
    void run();

    void reply(std::string json) override;
    void send_metrics(std::string json) override;
    bool send_module_chunk(std::string payload) override;
    void begin_recording(const wire::RecordingId& id) override;
    bool push(wire::Batch& batch, const wire::EventPeriods& periods) override;
    [[nodiscard]] Status status() const override;
    bool flush(std::uint32_t timeout_ms) override;
    void stop() override;

private:
    using ConnectionPtr = std::shared_ptr<Connection>;

    // What comes over from other threads: the begin of a recording, or a batch of it.
    struct Item {
        std::optional<wire::RecordingId> begin;
        wire::Batch batch;
        wire::EventPeriods periods;
    };
    struct Kept {
        wire::RecordingId id;
        Spool spool;
    };

    void enqueue(Item item);  // mutex_ is held
    void take_queue();
    void take(Item& item);
    void begin(const wire::RecordingId& id);
    void read_key();
    void look_at_key_later();
    void keep_within_bound();
    void drop_finished();

    void accept();
    void accepted(tcp::socket socket);
    void dialled(tcp::socket socket);
    void adopt(tcp::socket socket, secure::Carrier carrier, bool patient);
    void say_hello(const ConnectionPtr& connection);
    void on_frame(const ConnectionPtr& connection, const wire::Frame& frame);
    void on_acknowledgement(const ConnectionPtr& connection, const wire::Ack& ack);
    void on_answer(const ConnectionPtr& connection, const wire::Ack& ack);
    void on_closed(const ConnectionPtr& connection, const std::string& reason);
    void pump();
    void pump_batches(const ConnectionPtr& to);
    void pump_chunk();
    void publish();
    [[nodiscard]] bool takes_metrics() const;

    LinkOptions options_;
    Callbacks callbacks_;
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_;
    tcp::acceptor acceptor_;
    asio::steady_timer accept_pause_, key_look_;
    Dialer dialer_;

    // Of the link thread.
    std::deque<Kept> recordings_;  // the newest last; the first is the one that is being sent
    ConnectionPtr current_;
    std::vector<ConnectionPtr> candidates_;
    secure::Attempts attempts_;      // of wrong keys, by those who dial
    std::string chunk_;              // of a module file; empty: none waits
    std::uint64_t sent_before_ = 0;  // over connections that are closed
    bool key_trouble_said_ = false;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Item> queue_, taken_;  // swapped
    bool scheduled_ = false, taking_ = false, stopped_ = false;
    std::size_t kept_batches_ = 0;
    Status status_;
    std::atomic<std::uint32_t> waiting_metrics_{0};
    std::atomic<std::uint64_t> dropped_metrics_{0};
    std::atomic<bool> chunk_waits_{false};

    std::thread thread_;
};

Result<bool> TcpLink::listen() {
    asio::error_code error;
    const asio::ip::address address = asio::ip::make_address(options_.host.empty() ? "0.0.0.0" : options_.host, error);
    if (error) return fail(ErrorCode::invalid, options_.host + " is no IP address to listen on");
    const tcp::endpoint endpoint(address, options_.port);
    const std::string where = "port " + std::to_string(options_.port) + " on " + address.to_string();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_in_use)
        return fail(ErrorCode::busy, where + " is in use: choose another with --port");
    if (error == asio::error::access_denied)
        return fail(ErrorCode::permission, where + " is not allowed to this user: choose one above 1023 with --port");
    if (error) return fail(ErrorCode::io, where + " cannot be listened on: " + error.message());
    status_.listen_port = acceptor_.local_endpoint(error).port();
    return true;
}

void TcpLink::run() {
    if (options_.listen) {
        accept();
        look_at_key_later();
    } else {
        dialer_.dial();
    }
    // Signals are for the main thread.
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

// The newest health is in the next frame, so none waits behind bytes that the server does not read.
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

// Only when the socket has taken everything else, so that no batch waits behind more than one chunk.
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
    for (Item& item : taken_) take(item);
    taken_.clear();
    keep_within_bound();
    pump();
    {
        const std::lock_guard lock(mutex_);
        taking_ = false;
    }
    publish();
}

void TcpLink::take(Item& item) {
    if (item.begin) return begin(*item.begin);
    if (recordings_.empty() || recordings_.back().id != item.batch.recording_id) begin(item.batch.recording_id);
    recordings_.back().spool.push(std::move(item.batch), item.periods);
}

void TcpLink::begin(const wire::RecordingId& id) {
    if (recordings_.empty() || recordings_.back().id != id) recordings_.push_back({id, Spool(options_.spool_bytes)});
}

// The newest recording shrinks by itself; older ones that wait for a server go as a whole.
void TcpLink::keep_within_bound() {
    std::size_t bytes = 0;
    for (const Kept& kept : recordings_) bytes += kept.spool.bytes();
    while (recordings_.size() > 1 && bytes > options_.spool_bytes) {
        const Spool& oldest = recordings_.front().spool;
        if (!oldest.empty())
            std::fprintf(stderr, "flamewire-agent: an earlier recording that no server took is dropped: %llu samples\n",
                         static_cast<unsigned long long>(oldest.samples()));
        bytes -= oldest.bytes();
        recordings_.pop_front();
    }
}

void TcpLink::drop_finished() {
    while (recordings_.size() > 1 && recordings_.front().spool.empty()) recordings_.pop_front();
}

// Who is connected by the code before, to an agent that listens, is not any more.
void TcpLink::read_key() {
    if (options_.key_file.empty()) return;
    Result<secure::PairingKey> read = secure::read_pairing_file(options_.key_file);
    if (!read && !key_trouble_said_)
        std::fprintf(stderr, "flamewire-agent: the pairing code stays as it was: %s\n", read.error().message.c_str());
    key_trouble_said_ = !read;
    if (!read || *read == options_.key) return;
    options_.key = *std::move(read);
    std::fprintf(stderr, "flamewire-agent: %s has another pairing code now\n", options_.key_file.c_str());
    if (options_.listen && current_ && current_->encrypted()) current_->fail_with("its pairing code was changed");
}

void TcpLink::look_at_key_later() {
    key_look_.expires_after(between_key_looks);
    key_look_.async_wait([this](asio::error_code cancelled) {
        if (cancelled) return;
        read_key();
        look_at_key_later();
    });
}

void TcpLink::accept() {
    acceptor_.async_accept([this](asio::error_code error, tcp::socket socket) {
        if (error == asio::error::operation_aborted) return;
        if (!error) {
            accepted(std::move(socket));
            return accept();
        }
        // Out of descriptors, most likely: not at once again.
        accept_pause_.expires_after(std::chrono::seconds(1));
        accept_pause_.async_wait([this](asio::error_code cancelled) {
            if (!cancelled) accept();
        });
    });
}

void TcpLink::accepted(tcp::socket socket) {
    asio::error_code gone;
    const std::string address = socket.remote_endpoint(gone).address().to_string();
    // Closed with the socket: it tried too many wrong keys.
    if (gone || attempts_.wait_left_ns(address, monotonic_ns()) > 0) return;
    if (candidates_.size() >= max_candidates) {
        candidates_.front()->close();
        candidates_.erase(candidates_.begin());
    }
    const bool here = is_here(socket);
    const auto plain = options_.insecure || (here && !options_.only_encrypted) ? secure::Carrier::Plain::allowed
                                                                               : secure::Carrier::Plain::refused;
    adopt(std::move(socket),
          secure::Carrier::accepted(
              [this](std::string_view id) {
                  return options_.key && options_.key->id == id ? options_.key : std::nullopt;
              },
              plain),
          !here);
}

void TcpLink::dialled(tcp::socket socket) {
    read_key();
    if (options_.key) {
        Result<secure::Carrier> carrier = secure::Carrier::dialled(*options_.key);
        if (!carrier) return dialer_.again(false, carrier.error().message);
        return adopt(std::move(socket), std::move(*carrier), true);
    }
    if (!options_.insecure && !is_here(socket)) return dialer_.again(false, std::string(no_key_for_the_network));
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
    say_hello(connection);
}

void TcpLink::say_hello(const ConnectionPtr& connection) {
    wire::Hello hello = callbacks_.hello();
    hello.recording.reset();
    drop_finished();
    connection->recording.reset();
    if (!recordings_.empty()) {
        const Kept& kept = recordings_.front();
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
        if (!ack) return connection->fail_with("it sent a bad acknowledgement: " + ack.error().message);
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
    // Anything else is of a newer protocol: skipped.
}

void TcpLink::on_acknowledgement(const ConnectionPtr& connection, const wire::Ack& ack) {
    if (connection != current_ || recordings_.empty() || ack.recording != recordings_.front().id) return;
    recordings_.front().spool.acknowledge(ack.seq);
    pump();
}

void TcpLink::on_answer(const ConnectionPtr& connection, const wire::Ack& ack) {
    if (ack.recording && ack.recording != connection->recording)
        return connection->fail_with("it acknowledged another recording than the hello named");
    connection->answered();
    connection->ready = true;
    attempts_.succeeded(connection->peer_address());
    dialer_.succeeded();
    std::erase(candidates_, connection);
    if (current_ != connection) {
        if (current_) {
            std::fprintf(stderr, "flamewire-agent: the server at %s takes over from %s\n", connection->peer().c_str(),
                         current_->peer().c_str());
            sent_before_ += current_->sent_bytes();
            current_->close();
        } else {
            std::fprintf(stderr, "flamewire-agent: connected to %s%s\n", connection->peer().c_str(),
                         connection->encrypted() || connection->is_here() ? "" : ", NOT ENCRYPTED");
        }
        current_ = connection;
    }
    if (!recordings_.empty() && connection->recording == recordings_.front().id) {
        const bool new_epoch = recordings_.front().spool.resume_after(ack.seq);
        if (new_epoch && recordings_.size() == 1 && callbacks_.new_epoch_wanted) callbacks_.new_epoch_wanted();
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
        std::fprintf(stderr, "flamewire-agent: the connection to %s is over: %s\n", connection->peer().c_str(),
                     reason.c_str());
    }
    std::erase(candidates_, connection);
    // Shaking hands costs something, so whoever gives up before the end has tried, too.
    if (options_.listen && connection->never_paired() && !connection->is_here())
        attempts_.failed(connection->peer_address(), monotonic_ns());
    if (options_.listen && connection->wrong_key()) {
        std::fprintf(stderr, "flamewire-agent: %s was turned away: %s\n", connection->peer().c_str(), reason.c_str());
    }
    sent_before_ += connection->sent_bytes();
    if (!options_.listen) dialer_.again(was_ready, reason);
    publish();
}

// Sends what there is to send, as much as the socket takes now.
void TcpLink::pump() {
    const ConnectionPtr to = current_;
    if (!to || !to->ready) return;
    pump_batches(to);
    pump_chunk();
}

void TcpLink::pump_batches(const ConnectionPtr& to) {
    drop_finished();
    if (recordings_.empty()) return;
    Kept& kept = recordings_.front();
    if (to->recording != kept.id) {
        // Of a recording that was sent before, over another connection, the server must say what it has.
        if (kept.spool.ever_sent()) return say_hello(to);
        to->recording = kept.id;
    }
    // What was sent cannot shrink any more, so half of the spool may be under way.
    while (current_ == to && to->waiting_bytes() < burst_bytes && kept.spool.unsent() > 0 &&
           (kept.spool.in_flight_bytes() == 0 || kept.spool.in_flight_bytes() < options_.spool_bytes / 2))
        to->write(kept.spool.next()->frame);
}

void TcpLink::publish() {
    Status status;
    std::size_t batches = 0;
    for (const Kept& kept : recordings_) {
        status.spool_bytes += kept.spool.bytes();
        batches += kept.spool.batches().size();
    }
    status.connected = current_ && current_->ready;
    if (current_) status.peer = current_->peer();
    if (!recordings_.empty()) status.acknowledged_seq = recordings_.back().spool.acknowledged_seq();
    status.sent_bytes = sent_before_ + (current_ ? current_->sent_bytes() : 0);
    const std::lock_guard lock(mutex_);
    status.listen_port = status_.listen_port;
    status_ = std::move(status);
    kept_batches_ = batches;
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
        asio::error_code ignored;
        acceptor_.close(ignored);
        accept_pause_.cancel();
        key_look_.cancel();
        if (current_) current_->close();
        for (const ConnectionPtr& candidate : candidates_) candidate->close();
        io_.stop();
    });
    thread_.join();
}

}  // namespace

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
