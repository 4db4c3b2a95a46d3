#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "secure/hide_argument.h"
#include "server/options.h"
#include "server/pairing.h"
#include "server/server.h"

int main(int argc, char** argv) {
    // A write to a browser or an agent that has disconnected must fail with EPIPE, not end the process.
    std::signal(SIGPIPE, SIG_IGN);
    try {
        const auto parsed = flamewire::server::parse_options(argc, argv);
        if (!parsed.message.empty()) {
            fmt::print(parsed.exit_code == 0 ? stdout : stderr, "{}", parsed.message);
            return parsed.exit_code;
        }
        flamewire::secure::hide_argument(argv, "--perflens-token");
        if (parsed.options.pairing.kind == flamewire::server::PairingAction::Kind::none)
            return flamewire::server::run(parsed.options);
        if (const auto done = flamewire::server::change_keys(parsed.options); !done) {
            fmt::print(stderr, "flamewire-server: {}\n", done.error().message);
            return 1;
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "flamewire-server: {}\n", error.what());
        return 1;
    }
}
