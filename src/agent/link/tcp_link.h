// Link over TCP, run by the link thread: moves batches from the sampler's queue through the spools to the server.
// Private to this folder. It has many small functions, because each event of a connection has its own.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/link/acceptor.h"
#include "agent/link/connection.h"
#include "agent/link/dialer.h"
#include "agent/link/kept_recordings.h"
#include "agent/link/link.h"
#include "base/line_rate_limit.h"

namespace flamewire::agent {

class TcpLink final : public Link {
public:
    TcpLink(const LinkOptions& options, Callbacks callbacks)
        : options_(options),
          callbacks_(std::move(callbacks)),
          work_(asio::make_work_guard(io_)),
          acceptor_(io_, [this](asio::ip::tcp::socket socket) { accepted(std::move(socket)); }),
          key_timer_(io_),
          dialer_(io_, options.host, options.port, options.retry_ms,
                  [this](asio::ip::tcp::socket socket) { dialled(std::move(socket)); }),
          recordings_(options.spool_bytes) {}
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

    // Sent from other threads: the start of a recording, or one of its batches.
    struct Item {
        std::optional<wire::RecordingId> begin;
        wire::Batch batch;
        wire::EventPeriods periods;
    };

    void enqueue(Item item);  // mutex_ is held
    void take_queue();
    void send_hello(const ConnectionPtr& connection);
    void on_frame(const ConnectionPtr& connection, const wire::Frame& frame);
    void on_acknowledgement(const ConnectionPtr& connection, const wire::Ack& ack);
    void on_answer(const ConnectionPtr& connection, const wire::Ack& ack);
    void on_closed(const ConnectionPtr& connection, const std::string& reason);
    void pump();
    void pump_batches(const ConnectionPtr& to);
    void pump_chunk();
    void publish();
    [[nodiscard]] bool takes_metrics() const;
    void accepted(asio::ip::tcp::socket socket);
    void dialled(asio::ip::tcp::socket socket);
    void adopt(asio::ip::tcp::socket socket, secure::Carrier carrier, bool patient);
    void read_key();
    void check_key_later();

    LinkOptions options_;
    Callbacks callbacks_;
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_;
    Acceptor acceptor_;
    asio::steady_timer key_timer_;
    Dialer dialer_;

    // Used only by the link thread.
    KeptRecordings recordings_;
    ConnectionPtr current_;
    std::vector<ConnectionPtr> candidates_;
    std::string chunk_;              // of a module file; empty: none waits
    std::uint64_t sent_before_ = 0;  // bytes sent over closed connections
    LineRateLimit turned_away_;      // for lines about wrong keys
    bool key_trouble_logged_ = false;

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

}  // namespace flamewire::agent
