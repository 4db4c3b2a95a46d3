#include "server/start_text.h"

#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace flamewire::server {
namespace {

std::string url_host(const std::string& bind) {
    if (bind == "0.0.0.0") return "127.0.0.1";
    if (bind == "::") return "[::1]";
    return bind.find(':') == std::string::npos ? bind : "[" + bind + "]";
}

// The address by which boards most likely reach this machine: the source address of its default route. Nothing is sent.
std::string own_address() {
    asio::io_context io;
    asio::ip::udp::socket socket(io);
    std::error_code error;
    socket.connect({asio::ip::make_address("192.0.2.1"), 9}, error);  // reserved for documentation
    const auto here = error ? asio::ip::udp::endpoint() : socket.local_endpoint(error);
    if (error || here.address().is_unspecified() || here.address().is_loopback()) return "ADDRESS-OF-THIS-MACHINE";
    return here.address().to_string();
}

}  // namespace

bool into_journal() { return std::getenv("JOURNAL_STREAM") != nullptr && ::isatty(STDOUT_FILENO) == 0; }

std::string kept_token_path(const Options& options) { return options.data_dir + "/http-token"; }

std::string http_url(const Options& options, std::uint16_t port) {
    return fmt::format("{}://{}:{}{}", options.http_cert.empty() ? "http" : "https", url_host(options.http_bind), port,
                       options.http_prefix);
}

std::string target_command(const Options& options, std::uint16_t port) {
    std::string host = options.bind;
    if (host == "0.0.0.0" || host == "::") host = own_address();
    return fmt::format("flamewire-agent --server {}{}", host, port == 9999 ? "" : fmt::format(" --port {}", port));
}

void print_start(const Options& options, const ServerFacts& facts, const std::string& http_token, KeyRing& keys) {
    for (const std::string& remark : options.remarks) fmt::print(stderr, "{}\n", remark);
    const bool this_machine = is_loopback(options.bind);
    const bool secrets = !into_journal();
    std::string pair = " --pair CODE";
    if (secrets) {
        // A full disk must not prevent access to the sessions on it.
        if (const auto key = keys.unused())
            pair = " --pair " + secure::pairing_code(*key);
        else
            fmt::print(stderr, "no pairing code for another agent: {}\n", key.error().message);
    }
    fmt::print("agent-port: {}\npage: {}{}\n\nOn a target: {}{}\n", facts.agent_port, facts.http_url,
               http_token.empty() || !secrets ? "" : "?token=" + http_token, facts.target_command, pair);
    if (http_token.empty())
        fmt::print("--http-open: every user of this machine can use the page\n");
    else if (!secrets)
        fmt::print("The page asks for the token in {}\n",
                   options.http_token_file.empty() ? kept_token_path(options) : options.http_token_file);
    if (!http_token.empty() && options.http_cert.empty() && !is_loopback(options.http_bind))
        fmt::print(
            "The page is not encrypted: in a network that is not yours add --http-cert and --http-key, or use an "
            "SSH tunnel\n");
    if (!secrets)
        fmt::print("To make a code for an agent: flamewire-server --data-dir {} --new-key, or on the page\n",
                   facts.data_dir);
    if (this_machine) fmt::print("Agents on this machine only; for boards leave --bind out\n");
    if (options.insecure) fmt::print("INSECURE: agents are accepted without encryption and without a pairing code\n");
    fmt::print("Sessions are kept in {}\n", facts.data_dir);
    std::fflush(stdout);
}

}  // namespace flamewire::server
