#include "server/http/event_readers.h"

#include <asio/post.hpp>

#include <algorithm>

#include "server/limits.h"

namespace flamewire::server {
namespace {

// Limits for a reader of the stream: time between writes, and bytes per second. Changes in between become one event.
constexpr std::chrono::milliseconds event_interval{100};
constexpr std::size_t reader_bytes_a_second = std::size_t{128} << 10;
// The status covers all agents and sessions, so part of it changes all the time.
constexpr std::chrono::milliseconds status_interval{500};

}  // namespace

bool EventReaders::add(const RequestHandle& handle, std::string session) {
    if (streams_.size() >= limits::streams) return false;
    auto response = handle->create_response<restinio::chunked_output_t>();
    response.append_header(restinio::http_field::content_type, "text/event-stream");
    response.append_header(restinio::http_field::cache_control, "no-store");
    response.append_header("X-Accel-Buffering", "no");  // nginx passes it on without buffering
    add_security_headers(response);
    auto stream = std::make_shared<Stream>(std::move(response), io_, std::move(session));
    streams_.push_back(stream);
    // The text may be old if it was made for earlier readers.
    if (Clock::now() - status_at_ > status_interval) texts_.status_changed();
    stream->marks.status();
    for (const std::string& id : texts_.state().live()) stream->marks.session(id);
    for (const std::string& id : texts_.state().agents()) stream->marks.agent(id);
    send_marked(stream);
    return true;
}

// Writes what is marked: now, after the current write, or when the pause is over.
void EventReaders::send_marked(const StreamPtr& stream) {
    if (stream->gone || stream->writing || stream->waiting || !stream->marks.any()) return;
    const auto now = Clock::now();
    if (now < stream->next) {
        stream->waiting = true;
        stream->timer.expires_at(stream->next);
        stream->timer.async_wait([this, stream](const std::error_code& error) {
            stream->waiting = false;
            if (!error) send_marked(stream);
        });
        return;
    }
    std::string text = stream->marks.render(texts_);
    const std::chrono::milliseconds length(text.size() * 1000 / reader_bytes_a_second);
    stream->next = now + std::max(event_interval, length);
    write(stream, std::move(text));
}

void EventReaders::write(const StreamPtr& stream, std::string text) {
    if (text.empty()) return;
    stream->writing = true;
    stream->response.append_chunk(std::move(text));
    stream->response.flush([this, stream](const asio::error_code& error) {
        stream->writing = false;
        if (error || stopping_) {
            stream->gone = true;
            streams_.remove(stream);
            return;
        }
        // Post it, because this is the callback of the write.
        asio::post(io_, [this, stream] { send_marked(stream); });
    });
}

template <class Mark>
void EventReaders::each(Mark mark) {
    for (const StreamPtr& stream : std::list<StreamPtr>(streams_)) {
        mark(*stream);
        send_marked(stream);
    }
}

void EventReaders::status_changed() {
    if (status_due_) return;
    status_due_ = true;
    status_timer_.expires_at(std::max(status_at_ + status_interval, Clock::now()));
    status_timer_.async_wait([this](const std::error_code& error) {
        if (error) return;
        status_due_ = false;
        status_at_ = Clock::now();
        texts_.status_changed();
        each([](Stream& stream) { stream.marks.status(); });
    });
}
void EventReaders::session_changed(const std::string& id) {
    texts_.session_changed(id);
    each([&](Stream& stream) { stream.marks.session(id); });
}
void EventReaders::agent_changed(const std::string& id) {
    texts_.agent_changed(id);
    each([&](Stream& stream) { stream.marks.agent(id); });
}
void EventReaders::sessions_changed() {
    each([](Stream& stream) { stream.marks.sessions(); });
}

void EventReaders::beat() {
    for (const StreamPtr& stream : std::list<StreamPtr>(streams_))
        if (!stream->writing && !stream->gone) write(stream, ":\n\n");
}

void EventReaders::stop() {
    stopping_ = true;
    status_timer_.cancel();
    for (const auto& stream : std::list<StreamPtr>(streams_)) {
        stream->timer.cancel();
        if (!stream->writing) stream->response.done();
    }
    streams_.clear();
}

}  // namespace flamewire::server
