// Arbitrary bytes as each JSON message of the link. A message that parses is written and parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/utf8.h"
#include "wire/control.h"

using namespace flamewire::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto command = parse_command(text))
        if (!parse_command(encode_command(command->id, command->name, command->args))) std::abort();
    if (const auto ack = parse_ack(text))
        if (encode_ack(*parse_ack(encode_ack(*ack))) != encode_ack(*ack)) std::abort();
    if (const auto hello = parse_hello(text)) {
        const std::string written = encode_hello(*hello);
        const auto again = parse_hello(written);
        if (!again || encode_hello(*again) != written) std::abort();
    }
    const std::string valid = flamewire::valid_utf8(text);
    if (flamewire::valid_utf8(valid) != valid) std::abort();
    return 0;
}
