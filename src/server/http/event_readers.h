// The readers of /api/stream and what each of them is being sent. Use it on the io thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "server/http/event_stream.h"
#include "server/http/messages.h"

namespace flamewire::server {

class EventReaders {
public:
    EventReaders(asio::io_context& io, EventTexts::State state)
        : io_(io), texts_(std::move(state)), status_timer_(io) {}

    // Begins the stream and sends the newest state. `session`: the only one whose events it gets; empty: all. False:
    // there are too many readers.
    bool add(const RequestHandle& handle, std::string session);

    // Something changed: notify the readers.
    void status_changed();
    void session_changed(const std::string& id);
    void agent_changed(const std::string& id);
    void sessions_changed();
    // Sends each reader a comment, so that proxies keep its connection open.
    void beat();
    void stop();

private:
    using Clock = std::chrono::steady_clock;
    using Response = restinio::response_builder_t<restinio::chunked_output_t>;
    struct Stream {
        Stream(Response answer, asio::io_context& io, std::string session)
            : response(std::move(answer)), marks(std::move(session)), timer(io) {}
        Response response;
        EventMarks marks;
        asio::steady_timer timer;
        Clock::time_point next{};  // not before
        bool writing = false, waiting = false, gone = false;
    };
    using StreamPtr = std::shared_ptr<Stream>;

    template <class Mark>
    void each(Mark mark);
    void send_marked(const StreamPtr& stream);
    void write(const StreamPtr& stream, std::string text);

    asio::io_context& io_;
    EventTexts texts_;
    asio::steady_timer status_timer_;
    Clock::time_point status_at_{};  // when the status was last sent to readers
    bool status_due_ = false, stopping_ = false;
    std::list<StreamPtr> streams_;
};

}  // namespace flamewire::server
