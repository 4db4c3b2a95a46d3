#include "server/session/session.h"

#include "server/session/side_files.h"

namespace flamewire::server {

Session::Session(std::string id, const std::string& stream_path, const SessionLimits& limits)
    : id_(std::move(id)),
      store_(limits.store),
      status_(id_, store_, health_),
      stream_(stream_path, limits.stream_bytes, store_, status_, health_),
      symbols_(side_file(stream_path, symbols_name), store_, status_) {}

Result<std::shared_ptr<Session>> Session::create(std::string id, const std::string& stream_path,
                                                 const wire::RecordingId& recording, const SessionLimits& limits,
                                                 const std::string& owner_key) {
    std::shared_ptr<Session> session(new Session(std::move(id), stream_path, limits));
    TRY(session->stream_.create(recording, owner_key));
    // An agent is sending its first batch. Its address is set later.
    session->status_.attach_agent({});
    return session;
}

Result<std::shared_ptr<Session>> Session::load(std::string id, const std::string& stream_path,
                                               const SessionLimits& limits, const OnPartial& on_partial) {
    std::shared_ptr<Session> session(new Session(std::move(id), stream_path, limits));
    session->status_.begin_reading();
    TRY(session->stream_.replay([&] {
        if (on_partial) on_partial(session);
    }));
    return session;
}

}  // namespace flamewire::server
