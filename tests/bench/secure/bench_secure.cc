// The cost of encryption for the agent: for bytes that it sends in pieces of a batch's size, and for a handshake as the
// dialing end. Prints nanoseconds per byte, nanoseconds per handshake, and sent bytes per byte of content.
// Usage: bench_secure BYTES_OF_A_BATCH [--smoke]
#include <cstdio>
#include <cstdlib>

#include "../figure.h"
#include "base/clock.h"
#include "secure/carrier.h"

using namespace flamewire;
using namespace flamewire::secure;

namespace {

// Returns the CPU time of the client alone, in ns.
std::uint64_t shake_hands(const PairingKey& key, Carrier& client) {
    Carrier server = Carrier::accepted([&](std::string_view) { return std::optional(key); }, Carrier::Plain::refused);
    std::uint64_t spent = 0;
    const auto timed = [&](auto&& work) {
        const std::uint64_t began = process_cpu_ns();
        work();
        spent += process_cpu_ns() - began;
    };
    timed([&] { client = Carrier::dialled(key).value(); });
    while (client.key_id().empty()) {
        (void)server.receive(as_bytes_view(client.take_outgoing())).value();
        timed([&] { (void)client.receive(as_bytes_view(server.take_outgoing())).value(); });
    }
    return spent;
}

}  // namespace

int main(int argc, char** argv) {
    const bool smoke = bench::take_smoke(argc, argv);
    const std::size_t all_bytes = smoke ? 1U << 20 : 64U << 20;
    const int handshakes = smoke ? 1 : 50;
    const std::size_t batch = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 4096;
    const PairingKey key = make_pairing_key().value();
    Carrier client = Carrier::plain();
    std::uint64_t handshake_ns = 0;
    for (int i = 0; i < handshakes; ++i) handshake_ns += shake_hands(key, client);
    const std::string bytes(batch, 'x');
    std::size_t carried = 0, sent = 0;
    const std::uint64_t began = process_cpu_ns();
    for (; carried < all_bytes; carried += batch) sent += client.carry(bytes).value().size();
    const std::uint64_t spent = process_cpu_ns() - began;
    std::printf("%.3f %.0f %.4f\n", static_cast<double>(spent) / static_cast<double>(carried),
                static_cast<double>(handshake_ns) / handshakes,
                static_cast<double>(sent) / static_cast<double>(carried));
}
