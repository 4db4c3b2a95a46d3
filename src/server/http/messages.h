// Converts RESTinio's requests to ours, and our answers to RESTinio's.
#pragma once

#include <memory>

#include "server/http/acceptor.h"
#include "server/http/connections.h"
#include "server/http/request.h"

namespace flamewire::server {

using RequestHandle = restinio::request_handle_t;

Request request_of(const RequestHandle& handle);
// `head`: send no body. The connection becomes idle when all of the answer is sent.
void respond(const RequestHandle& handle, const std::shared_ptr<Connections>& connections, Answer answer, bool head);

template <class Response>
void add_security_headers(Response& response) {
    for (const auto& [name, value] : security_headers()) response.append_header(name, value);
}

}  // namespace flamewire::server
