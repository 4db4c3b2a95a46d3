#include "server/http/messages.h"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "secure/host.h"
#include "server/limits.h"

namespace flamewire::server {
namespace {

// Between this limit and max_body_bytes, our own code sends an error.
constexpr std::size_t hard_body_limit = 2 * max_body_bytes;
// A large file over a slow link may take any time. Connections closes those that stop accepting data.
constexpr std::chrono::hours file_time_limit{24 * 365};

std::string_view reason_phrase(int status) {
    switch (status) {
        case 200: return "OK";
        case 303: return "See Other";
        case 308: return "Permanent Redirect";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 409: return "Conflict";
        case 413: return "Payload Too Large";
        case 429: return "Too Many Requests";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        default: return "Internal Server Error";
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

restinio::incoming_http_msg_limits_t message_limits() {
    return restinio::incoming_http_msg_limits_t{}
        .max_url_size(limits::http_target_bytes)
        .max_field_name_size(1024)
        .max_field_value_size(16384)
        .max_field_count(100)
        .max_body_size(hard_body_limit);
}

// The HTTP parser that RESTinio uses has its own limit: 80 KiB for target and header fields together.
void limit_headers() { ::http_parser_set_max_header_size(limits::http_target_bytes + limits::http_fields_bytes); }

Request request_of(const restinio::http_request_header_t& header, std::string body, const asio::ip::address& remote) {
    Request request;
    request.method = header.method().c_str();
    request.host = header.get_field_or("Host", std::string());
    request.origin = header.get_field_or("Origin", std::string());
    request.fetch_site = header.get_field_or("Sec-Fetch-Site", std::string());
    request.cookies = header.get_field_or("Cookie", std::string());
    request.authorization = header.get_field_or("Authorization", std::string());
    request.remote = remote.to_string();
    request.client = secure::host_of(remote);
    request.body = std::move(body);
    return request;
}

}  // namespace flamewire::server
