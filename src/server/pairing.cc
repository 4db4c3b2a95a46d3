#include "server/pairing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/file.h"
#include "base/json_writer.h"
#include "server/link/key_ring.h"
#include "server/session/iso_time.h"

namespace flamewire::server {
namespace {

void print_keys(const KeyRing& keys) {
    fmt::print("{:<18}{:<22}{:<26}{}\n", "id", "made", "last used", "of");
    for (const KnownKey& key : keys.all())
        fmt::print("{:<18}{:<22.19}{:<26}{}\n", key.id, iso_time(key.made_ns),
                   key.used_ns == 0 ? std::string("never") : fmt::format("{:.19}", iso_time(key.used_ns)),
                   !key.address.empty()    ? "listening agent " + key.address
                   : key.used_from.empty() ? std::string("-")
                                           : "agent at " + key.used_from);
}

}  // namespace

std::string keys_path(const std::string& data_dir) { return data_dir + "/pairing-keys"; }

Result<bool> change_keys(const Options& options) {
    (void)TRY(make_private_folders(options.data_dir));
    KeyRing keys = TRY(KeyRing::open(keys_path(options.data_dir)));
    const PairingAction& action = options.pairing;
    switch (action.kind) {
        case PairingAction::Kind::none: break;
        case PairingAction::Kind::list: print_keys(keys); break;
        case PairingAction::Kind::make: fmt::print("--pair {}\n", secure::pairing_code(TRY(keys.make()))); break;
        case PairingAction::Kind::renew:
            fmt::print("--pair {}\n", secure::pairing_code(TRY(keys.renew(action.argument))));
            break;
        case PairingAction::Kind::withdraw:
            if (!TRY(keys.withdraw(action.argument)))
                return fail(ErrorCode::not_found,
                            fmt::format("there is no pairing key {}; --list-keys shows them", action.argument));
            fmt::print("{} is withdrawn; an agent that is connected by it is disconnected within a second\n",
                       action.argument);
            break;
        case PairingAction::Kind::put: {
            if (::isatty(STDIN_FILENO) == 1) fmt::print(stderr, "pairing code that the agent printed: ");
            std::string code;
            std::getline(std::cin, code);
            const secure::PairingKey key = TRY(secure::parse_pairing_code(code));
            TRY(keys.put(action.argument, key));
            fmt::print("the code is kept for {} and tried at the next connection\n", action.argument);
            break;
        }
    }
    return true;
}

}  // namespace flamewire::server
