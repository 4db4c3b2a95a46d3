// Arbitrary bytes as a capture: captures are attached to bug reports, so they are not trusted.
#include <cstddef>
#include <cstdint>

#include "agent/capture/format.h"
#include "replay/capture_file.h"
#include "replay/recording_decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (const auto capture = replay::CaptureFile::of_bytes(bytes)) {
        (void)capture->results(agent::Call::input, inputs::plan);
        (void)capture->file_chunks(0);
    }
    (void)replay::decode_plan(bytes);
    (void)replay::decode_capabilities(bytes);
    (void)replay::decode_machine(bytes);
    (void)replay::decode_command(bytes);
    return 0;
}
