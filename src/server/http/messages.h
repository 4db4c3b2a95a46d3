// Converts RESTinio's requests to ours, and our answers to RESTinio's.
#pragma once

#include <memory>

#include "server/http/acceptor.h"
#include "server/http/connections.h"
#include "server/http/request.h"

namespace flamewire::server {

using RequestHandle = restinio::request_handle_t;

// Limits of one message. RESTinio closes the connection without an answer if a message exceeds them.
restinio::incoming_http_msg_limits_t message_limits();
// Applies to all connections of this process: call it once, before the first.
void limit_headers();

// All but path and query.
Request request_of(const restinio::http_request_header_t& header, std::string body, const asio::ip::address& remote);
// `head`: send no body. The connection becomes idle when all of the answer is sent.
void respond(const RequestHandle& handle, const std::shared_ptr<Connections>& connections, Answer answer, bool head);

template <class Response>
void add_security_headers(Response& response) {
    for (const auto& [name, value] : security_headers()) response.append_header(name, value);
}

}  // namespace flamewire::server
