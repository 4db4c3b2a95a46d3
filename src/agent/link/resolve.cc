#include "agent/link/resolve.h"

#include <netdb.h>
#ifdef __GLIBC__
#include <nss.h>
#endif

#include <asio/ip/address.hpp>
#include <asio/post.hpp>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

namespace flamewire::agent {

// Shared between the owner and the thread. The io_context may no longer exist when the lookup returns.
struct Resolution::State {
    std::mutex mutex;
    asio::io_context* io = nullptr;  // null: the Resolution was destroyed
    std::function<void(Result<Endpoints>)> done;
};

namespace {

// A static glibc would load the host's NSS plug-ins, which may be of another version. Files and DNS are built in.
void use_built_in_name_services() {
#ifdef __GLIBC__
    static std::once_flag once;
    std::call_once(once, [] { __nss_configure_lookup("hosts", "files dns"); });
#endif
}

Result<Endpoints> resolve_host(const std::string& host, std::uint16_t port) {
    use_built_in_name_services();
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string service = std::to_string(port);
    const int failure = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
    if (failure != 0) {
        const char* reason = failure == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(failure);
        return fail(ErrorCode::not_found,
                    "the name " + host + " cannot be resolved: " + reason + "; give its address where there is no DNS");
    }
    Endpoints endpoints;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        asio::ip::tcp::endpoint endpoint;
        if (entry->ai_addrlen > endpoint.capacity()) continue;
        std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
        endpoint.resize(entry->ai_addrlen);
        endpoints.push_back(endpoint);
    }
    ::freeaddrinfo(found);
    return endpoints;
}

void answer(const std::shared_ptr<Resolution::State>& state, Result<Endpoints> result) {
    const std::lock_guard lock(state->mutex);
    if (state->io == nullptr) return;
    asio::post(*state->io, [state, result = std::move(result)]() mutable {
        std::function<void(Result<Endpoints>)> done;
        {
            const std::lock_guard inner(state->mutex);
            if (state->io == nullptr) return;
            done = std::move(state->done);
        }
        if (done) done(std::move(result));
    });
}

}  // namespace

Resolution::Resolution(asio::io_context& io, const std::string& host, std::uint16_t port,
                       std::function<void(Result<Endpoints>)> done)
    : state_(std::make_shared<State>()) {
    state_->io = &io;
    state_->done = std::move(done);
    asio::error_code not_literal;
    const asio::ip::address address = asio::ip::make_address(host, not_literal);
    if (!not_literal) {
        answer(state_, Endpoints{{address, port}});
        return;
    }
    std::thread([state = state_, host, port] { answer(state, resolve_host(host, port)); }).detach();
}

Resolution::~Resolution() {
    const std::lock_guard lock(state_->mutex);
    state_->io = nullptr;
    state_->done = nullptr;
}

}  // namespace flamewire::agent
