// A request and its answer as values, and the checks that apply to every request. No sockets here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::server {

inline constexpr std::size_t max_body_bytes = std::size_t{1} << 20;

struct Request {
    std::string method;                                            // upper case
    std::string path;                                              // decoded, without the query
    std::map<std::string, std::string, std::less<>> query;         // decoded; the last of several equal names
    std::string host, origin, fetch_site, cookies, authorization;  // headers; empty when absent
    std::string remote;                                            // IP address of the other end
    std::string client;                                            // secure::host_of() it
    std::string body;

    [[nodiscard]] std::string_view parameter(std::string_view name) const {
        const auto at = query.find(name);
        return at == query.end() ? std::string_view{} : std::string_view(at->second);
    }
};

// The body of an answer that is too large for memory.
struct FileBody {
    UniqueFd fd;  // from its start
    std::uint64_t size = 0;
};

struct Answer {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
    std::string_view fixed_body;     // instead of body: bytes that outlive the server (embedded files)
    std::shared_ptr<FileBody> file;  // instead of body
    std::vector<std::pair<std::string, std::string>> headers;
};

Answer json_answer(std::string body);
// {"error":{"code","message"}}
Answer error_answer(int status, std::string_view code, std::string_view message);
// Maps an Error to an HTTP status and code.
Answer error_answer(const Error& error);
// {"error":{"code","message",list_name:[…]}}
Answer list_error(int status, std::string_view code, std::string_view message, std::string_view list_name,
                  const std::vector<std::string>& list);
Answer download(std::string content_type, std::string body, std::string_view file_name);

// Path and query of a request target ("/api/x?a=b%20c"). Empty if an escape is malformed, or encodes a NUL or a slash
// of the path.
struct Target {
    std::string path;
    std::map<std::string, std::string, std::less<>> query;
};
std::optional<Target> parse_target(std::string_view target);

// Refuses what a page of another site could do through a user's browser: a Host that is not a name of this server (DNS
// rebinding), and API requests and changes from another origin or site. `names`: the server's names besides localhost
// and IP addresses. Returns nothing if the request may proceed.
std::optional<Answer> check_origin(const Request& request, const std::vector<std::string>& names);
// "localhost:8080" -> "localhost"; "[::1]:8080" -> "::1".
std::string_view host_name(std::string_view host_header);

// Sent with every answer.
const std::vector<std::pair<std::string, std::string>>& security_headers();

}  // namespace flamewire::server
