// Instructions of a function that is too long for one answer. It is part of this program and consists of one-byte
// instructions.
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <link.h>
#include <rapidjson/document.h>

#include "base/file.h"
#include "elf/elf_file.h"
#include "recording.h"
#include "server/http/disasm_answers.h"
#include "server/session/session.h"
#include "symbol/symbolizer.h"
#include "symbol/types/config.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;

#if defined(__x86_64__)
extern "C" void flamewire_long_function();
asm(R"(
    .pushsection .text
    .globl flamewire_long_function
    .type flamewire_long_function, @function
flamewire_long_function:
    .fill 150000, 1, 0x90
    ret
    .size flamewire_long_function, . - flamewire_long_function
    .popsection
)");

namespace {

constexpr std::uint64_t function_bytes = 150'001, shown_bytes = 64 << 10;

std::uint64_t load_bias() {
    std::uint64_t bias = 0;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            *static_cast<std::uint64_t*>(out) = info->dlpi_addr;
            return 1;  // the first one is the program
        },
        &bias);
    return bias;
}

}  // namespace

TEST_CASE("a long function is shown in consecutive parts") {
    const ScratchDirectory directory;
    const std::string program = std::filesystem::canonical("/proc/self/exe").string();
    const std::uint64_t start = reinterpret_cast<std::uintptr_t>(&flamewire_long_function) - load_bias();
    RecordingScene scene;
    wire::Batch batch = scene.batch();
    batch.strings[0] = program;
    const std::string file = read_file(program, std::size_t{1} << 30).value();
    const elf::ByteSource source = elf::source_of_bytes(as_bytes_view(file));
    batch.modules[0].build_id = elf::read_build_id(source, elf::read_header(source).value()).value();
    for (wire::Location& location : batch.locations) location = {1, start + 10, 0, 0, 0, 0};
    const auto session = Session::create("s", directory / "stream.flw", scene.id(), {}).value();
    const wire::Frame frame = scene.frame(batch);
    REQUIRE(session->ingest(frame.flag, frame.payload, 1'800'000'000'000'000'000));
    session->status().publish(true);

    symbol::Symbolizer symbolizer{symbol::Config{}};
    std::uint64_t from = start;
    for (int part = 0; part < 3; ++part) {
        Request request;
        request.method = "GET";
        request.query = {{"module", std::filesystem::path(program).filename().string()},
                         {"address", fmt::format("{}", start + 10)},
                         {"from", fmt::format("{}", from)}};
        const Answer answer = disasm_answer(*session, request, symbolizer);
        INFO(answer.body.substr(0, 1000));
        REQUIRE(answer.status == 200);
        rapidjson::Document json;
        json.Parse(answer.body.c_str());
        const std::uint64_t rest = start + function_bytes - from;
        CHECK(json["first"].GetUint64() == (part == 0 ? 0 : start));
        CHECK(json["next"].GetUint64() == (rest > shown_bytes ? from + shown_bytes : 0));
        from += shown_bytes;
    }
}
#endif
