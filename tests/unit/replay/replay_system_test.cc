#include "replay/replay_system.h"

#include <catch2/catch.hpp>

#include <cerrno>

#include "base/clock.h"
#include "base/file.h"
#include "written_capture.h"

namespace flamewire::replay {
namespace {

using agent::Call;

struct Replay {
    explicit Replay(const WrittenCapture& written)
        : capture(*CaptureFile::of_bytes(written.bytes())), machine(capture, 4096, [](std::uint32_t) {}) {}

    // Starts the next round, as the sampler does.
    void round() { (void)machine.kernel().poll({}, 0); }
    std::string content(const std::string& path) {
        const UseSystem use(&machine);
        return read_file(path).value_or("none");
    }

    CaptureFile capture;
    ReplaySystem machine;
};

}  // namespace

TEST_CASE("a call returns the result of its round") {
    Replay replay(WrittenCapture()
                      .file("/proc/1/stat", 0, "at first")
                      .round()
                      .file("/proc/1/stat", 1, "then")
                      .file("/proc/1/stat", 2, "and again")
                      .round()
                      .file("/proc/1/stat", 3, "at last"));
    CHECK(replay.content("/proc/1/stat") == "at first");
    replay.round();
    CHECK(replay.content("/proc/1/stat") == "then");
    CHECK(replay.content("/proc/1/stat") == "and again");
    replay.round();
    CHECK(replay.content("/proc/1/stat") == "at last");
    CHECK(replay.machine.fidelity().out_of_order == 0);
    CHECK(replay.machine.fidelity().missing == 0);
}

TEST_CASE("fewer calls skip results of earlier rounds; further calls repeat the last result and are counted") {
    Replay replay(WrittenCapture()
                      .file("/proc/1/stat", 0, "at first")
                      .round()
                      .file("/proc/1/stat", 1, "then")
                      .round()
                      .file("/proc/1/stat", 2, "at last")
                      .round());
    replay.round();
    replay.round();
    CHECK(replay.content("/proc/1/stat") == "at last");
    CHECK(replay.machine.fidelity().out_of_order == 0);
    replay.round();
    CHECK(replay.content("/proc/1/stat") == "at last");
    CHECK(replay.machine.fidelity().out_of_order == 1);
    CHECK(replay.content("/proc/2/stat") == "none");
    CHECK(replay.machine.fidelity().missing == 1);
    CHECK(replay.machine.fidelity().first_missing.front().find("/proc/2/stat") != std::string::npos);
}

TEST_CASE("further readings advance a clock until the next round") {
    constexpr std::uint64_t monotonic = 0;
    Replay replay(WrittenCapture()
                      .add(Call::now, varints({monotonic}), varints({zigzag(1'000'000)}))
                      .round()
                      .add(Call::now, varints({monotonic}), varints({zigzag(500'000)})));
    const UseSystem use(&replay.machine);
    CHECK(monotonic_ns() == 1'000'000);
    CHECK(monotonic_ns() == 1'001'000);
    replay.round();
    CHECK(monotonic_ns() == 1'500'000);
}

TEST_CASE("a read at an unrecorded offset is assembled from recorded reads") {
    Replay replay(WrittenCapture()
                      .add(Call::open, varints({0}) + "/lib/libc.so", result(7))
                      .add(Call::read_at, varints({7, 0, 4}), result(4) + "abcd")
                      .add(Call::read_at, varints({7, 4, 4}), result(4) + "efgh"));
    const UseSystem use(&replay.machine);
    const UniqueFd file(System::current().open("/lib/libc.so", 0));
    REQUIRE(file);
    CHECK(read_range(file.get(), 0, 4).value() == "abcd");
    CHECK(read_range(file.get(), 2, 5).value() == "cdefg");
    CHECK(replay.machine.fidelity().out_of_order == 1);
    CHECK(read_range(file.get(), 100, 4).error().errno_value == ENOENT);
}

TEST_CASE("each read of a ring adds the bytes that were recorded for it, also across its end") {
    constexpr std::uint64_t page = 4096;
    const std::string first(4000, 'a'), second(200, 'b');
    Replay replay(WrittenCapture()
                      .add(Call::perf_open, varints({1, 9, 0, 0, 0, zigzag(0), zigzag(0), 0, 0}), result(0))
                      .add(Call::perf_map, varints({0, 2 * page}), result(0))
                      .round()
                      .add(Call::perf_head, varints({0}), varints({4000}) + first)
                      .round()
                      .add(Call::perf_head, varints({0}), varints({4200}) + second));
    const agent::Kernel kernel = replay.machine.kernel();
    perf_event_attr attr{};
    attr.type = 1;
    attr.config = 9;
    const int fd = kernel.open(attr, 0, 0);
    REQUIRE(fd >= 0);
    int error = 0;
    const auto* mapped = static_cast<const perf_event_mmap_page*>(kernel.map(fd, 2 * page, error));
    REQUIRE(mapped != nullptr);
    const auto* data = static_cast<const char*>(static_cast<const void*>(mapped)) + page;
    CHECK(kernel.head(*mapped) == 0);
    replay.round();
    CHECK(kernel.head(*mapped) == 4000);
    CHECK(std::string_view(data, 4000) == first);
    replay.round();
    CHECK(kernel.head(*mapped) == 4200);
    CHECK(std::string_view(data + 4000, 96) == second.substr(0, 96));
    CHECK(std::string_view(data, 104) == second.substr(0, 104));
    CHECK(kernel.head(*mapped) == 4200);
}

TEST_CASE("damaged captures are rejected with a message") {
    CHECK(CaptureFile::of_bytes("FLMWIRE").error().message.find("not a capture") != std::string::npos);
    std::string bytes = WrittenCapture().file("/proc/1/stat", 0, "at first").bytes();
    CHECK(CaptureFile::of_bytes(bytes.substr(0, bytes.size() - 1))->truncated().has_value());
    bytes[agent::capture_magic.size() + 4] ^= 0x55;  // no longer a zstd frame
    CHECK_FALSE(CaptureFile::of_bytes(bytes).has_value());
    std::string chunk(1, static_cast<char>(Call::open));
    append_varint(chunk, 1'000);
    const std::string compressed = wire::compress(chunk);
    bytes =
        std::string(agent::capture_magic) + static_cast<char>(compressed.size()) + std::string(3, '\0') + compressed;
    CHECK(CaptureFile::of_bytes(bytes).error().message.find("exceeds its chunk") != std::string::npos);
}

}  // namespace flamewire::replay
