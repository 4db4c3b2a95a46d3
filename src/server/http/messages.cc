#include "server/http/messages.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "secure/host.h"

namespace flamewire::server {
namespace {

// A large file over a slow link may take any time. Connections closes those that stop accepting data.
constexpr std::chrono::hours file_time_limit{24 * 365};

std::string_view reason_phrase(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 303:
            return "See Other";
        case 308:
            return "Permanent Redirect";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 409:
            return "Conflict";
        case 413:
            return "Payload Too Large";
        case 429:
            return "Too Many Requests";
        case 502:
            return "Bad Gateway";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        default:
            return "Internal Server Error";
    }
}

}  // namespace

void respond(const RequestHandle& handle, const std::shared_ptr<Connections>& connections, Answer answer, bool head) {
    auto response = handle->create_response(
        restinio::http_status_line_t{restinio::http_status_code_t{static_cast<std::uint16_t>(answer.status)},
                                     std::string(reason_phrase(answer.status))});
    response.append_header(restinio::http_field::content_type, answer.content_type);
    add_security_headers(response);
    bool cached = false;
    for (const auto& [name, value] : answer.headers) {
        response.header().set_field(name, value);  // replaces one of the fields above
        cached = cached || name == "Cache-Control";
    }
    if (!cached) response.append_header(restinio::http_field::cache_control, "no-store");
    if (!head) {
        if (answer.file)
            response.set_body(
                restinio::sendfile(restinio::file_descriptor_holder_t{answer.file->fd.release()},
                                   restinio::file_meta_t{answer.file->size, std::chrono::system_clock::now()})
                    .timelimit(file_time_limit));
        else if (!answer.fixed_body.empty())
            response.set_body(restinio::const_buffer(answer.fixed_body.data(), answer.fixed_body.size()));
        else
            response.set_body(std::move(answer.body));
    }
    connections->sending(handle->remote_endpoint());
    response.done(
        [connections, remote = handle->remote_endpoint()](const asio::error_code&) { connections->idle(remote); });
}

Request request_of(const RequestHandle& handle) {
    Request request;
    const auto& header = handle->header();
    request.method = header.method().c_str();
    request.host = header.get_field_or("Host", std::string());
    request.origin = header.get_field_or("Origin", std::string());
    request.fetch_site = header.get_field_or("Sec-Fetch-Site", std::string());
    request.cookies = header.get_field_or("Cookie", std::string());
    request.authorization = header.get_field_or("Authorization", std::string());
    const asio::ip::address remote = handle->remote_endpoint().address();
    request.remote = remote.to_string();
    request.client = secure::host_of(remote);
    request.body = handle->body();
    return request;
}

}  // namespace flamewire::server
