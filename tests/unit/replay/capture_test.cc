// Captures recordings of this machine and replays them.
#include "agent/capture/capture.h"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "../agent/recorded.h"
#include "agent/capture/capturing_sink.h"
#include "agent/recording/recording_encode.h"
#include "base/file.h"
#include "replay/recording_decode.h"
#include "replay/replay.h"
#include "wire/frame.h"
#include "written_capture.h"

namespace flamewire::replay {
namespace {

using namespace agent;

struct Folder {
    Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
    ~Folder() { (void)::unlink(file().c_str()), (void)::rmdir(path.c_str()); }
    [[nodiscard]] std::string file() const { return path + "/capture"; }
    std::string path = "/tmp/flamewire-capture-XXXXXX";
};

// Records while `use` runs, writes the capture to `file`, and returns the batches.
template <class Use>
std::vector<wire::Batch> captured(const std::string& file, const RecordingPlan& plan, Use use) {
    auto capture = Capture::begin(file);
    REQUIRE(capture.has_value());
    MemorySink memory;
    CapturingSink sink(memory, **capture);
    const Machine machine = describe_machine();
    const Capabilities capabilities = here();
    (void)(*capture)->input(inputs::plan, encode_plan(plan));
    (void)(*capture)->input(inputs::capabilities, encode_capabilities(capabilities));
    (void)(*capture)->input(inputs::machine, encode_machine(machine));
    auto recorder = Recorder::open(plan, capabilities, machine, sink, {}, {capture->get(), &(*capture)->kernel()});
    REQUIRE(recorder.has_value());
    use(**recorder);
    (*recorder)->stop("enough", 3);
    return std::move(memory.batches);
}

// The capture up to the entry that stops the recording.
std::string without_stop(std::string_view capture) {
    WrittenCapture kept;
    ByteReader file(as_bytes_view(capture.substr(capture_magic.size())));
    while (file.remaining() != 0) {
        std::uint32_t size = 0;
        for (const unsigned shift : {0U, 8U, 16U, 24U}) size |= std::uint32_t{file.u8()} << shift;
        const auto chunk = wire::decompress(file.bytes(size), max_capture_chunk_bytes);
        REQUIRE(chunk.has_value());
        ByteReader in(as_bytes_view(*chunk));
        while (in.remaining() != 0) {
            const auto call = static_cast<Call>(in.u8());
            const std::string_view arguments = as_text(in.bytes(static_cast<std::size_t>(read_varint(in))));
            const std::string_view result = as_text(in.bytes(static_cast<std::size_t>(read_varint(in))));
            REQUIRE(in.ok());
            if (call == Call::input && arguments == inputs::stop) return kept.bytes();
            kept.add(call, arguments, result);
        }
    }
    FAIL("the capture has no stop");
    return {};
}

void run_for(std::uint64_t ms) { ::usleep(static_cast<useconds_t>(ms * 1'000)); }

}  // namespace

TEST_CASE("ten replays of a capture give the batches that the recording sent") {
    if (!perf_works()) return;
    const Burner burner;
    const Folder folder;
    RecordingPlan plan = plan_for(burner.pid(), "cpu-clock,off-cpu");
    plan.settings.unwind = "auto";
    const std::vector<wire::Batch> sent = captured(folder.file(), plan, [&](Recorder& recorder) {
        run_for(300);
        REQUIRE(recorder.execute(Pause{}).has_value());
        run_for(50);
        REQUIRE(recorder.execute(Resume{}).has_value());
        REQUIRE(recorder.execute(SetCountBy{CountBy::thread}).has_value());
        recorder.begin_epoch();
        run_for(200);
        Settings faster = plan.settings;
        faster.frequency_hz = 1'999;
        faster.unwind = "dwarf";
        REQUIRE(recorder.execute(std::make_shared<const Change>(faster, *parse_requested(faster, real_sysfs()), here()))
                    .has_value());
        run_for(300);
        REQUIRE(recorder.execute(ResolveKernel{}).has_value());
        run_for(100);
    });
    REQUIRE(sent.size() > 10);
    const auto capture = CaptureFile::read(folder.file());
    REQUIRE(capture.has_value());
    CHECK_FALSE(capture->truncated().has_value());
    for (int time = 0; time < 10; ++time) {
        const auto done = replay(*capture);
        REQUIRE(done.has_value());
        CHECK(done->batches == sent);
        CHECK(done->fidelity.out_of_order == 0);
        CHECK(done->fidelity.missing == 0);
        CHECK(done->batches.back().end->reason == "enough");
        CHECK(done->batches.back().end->exit_code == 3);
    }
}

TEST_CASE("a replay ends when the target exits") {
    if (!perf_works()) return;
    Burner burner;
    const Folder folder;
    const std::vector<wire::Batch> sent = captured(folder.file(), plan_for(burner.pid()), [&](Recorder& recorder) {
        run_for(200);
        burner.stop();
        REQUIRE(soon([&] { return recorder.ended().has_value(); }));
    });
    const auto done = replay(*CaptureFile::read(folder.file()));
    REQUIRE(done.has_value());
    CHECK(done->batches == sent);
    CHECK(done->batches.back().end->reason == "target exited");
}

TEST_CASE("a replay fails to open when the recording did") {
    if (!perf_works()) return;
    const Folder folder;
    Burner burner;
    const RecordingPlan plan = plan_for(burner.pid());
    burner.stop();
    {
        auto capture = Capture::begin(folder.file());
        REQUIRE(capture.has_value());
        MemorySink sink;
        (void)(*capture)->input(inputs::plan, encode_plan(plan));
        (void)(*capture)->input(inputs::capabilities, encode_capabilities(here()));
        (void)(*capture)->input(inputs::machine, encode_machine(describe_machine()));
        CHECK_FALSE(Recorder::open(plan, here(), describe_machine(), sink, {}, {capture->get(), &(*capture)->kernel()})
                        .has_value());
    }
    const auto done = replay(*CaptureFile::read(folder.file()));
    REQUIRE(done.has_value());
    REQUIRE(done->refused.has_value());
    CHECK(done->refused->code == ErrorCode::not_found);
}

TEST_CASE("a truncated capture is replayed up to its end") {
    if (!perf_works()) return;
    const Burner burner;
    const Folder folder;
    const std::vector<wire::Batch> sent =
        captured(folder.file(), plan_for(burner.pid()), [](Recorder&) { run_for(1'500); });
    const std::string whole = *read_file(folder.file());
    const auto part = CaptureFile::of_bytes(std::string_view(whole).substr(0, whole.size() - 1));
    REQUIRE(part.has_value());
    CHECK(part->truncated().has_value());
    const auto done = replay(*part);
    // A short recording has only one chunk.
    if (!done) {
        CHECK(done.error().message.find("ends before the recording starts") != std::string::npos);
    } else {
        CHECK(done->batches.size() <= sent.size());
        REQUIRE((!done->batches.empty() && done->batches.back().end));
        // The missing chunk can begin before or after the stop of the recording.
        const std::string& reason = done->batches.back().end->reason;
        CHECK((reason == "end of the capture" || reason == "enough"));
        CHECK(done->ended_early == (reason == "end of the capture"));
    }
}

TEST_CASE("a capture that ends before the recording ends its replay with the reason") {
    if (!perf_works()) return;
    const Burner burner;
    const Folder folder;
    (void)captured(folder.file(), plan_for(burner.pid()), [](Recorder&) { run_for(200); });
    const auto part = CaptureFile::of_bytes(without_stop(*read_file(folder.file())));
    REQUIRE(part.has_value());
    const auto done = replay(*part);
    REQUIRE(done.has_value());
    CHECK(done->ended_early);
    REQUIRE((!done->batches.empty() && done->batches.back().end));
    CHECK(done->batches.back().end->reason == "end of the capture");
}

TEST_CASE("a capture does not replace a file, and only its owner can read it") {
    const Folder folder;
    {
        const auto first = Capture::begin(folder.file());
        REQUIRE(first.has_value());
        (void)(*first)->input("plan", "what was there");
    }
    const std::string before = *read_file(folder.file());
    const auto second = Capture::begin(folder.file());
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().message ==
          "cannot capture to " + folder.file() + ": the file exists. Remove it or give another name.");
    CHECK(*read_file(folder.file()) == before);
    struct stat status{};
    REQUIRE(::stat(folder.file().c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    const auto missing = Capture::begin(folder.path + "/no/such/folder");
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().code == ErrorCode::not_found);
}

TEST_CASE("a capture that reaches its limit ends, and the recording continues") {
    if (!perf_works()) return;
    const Burner burner;
    const Folder folder;
    auto capture = Capture::begin(folder.file(), 256 * 1024);
    REQUIRE(capture.has_value());
    // Random bytes do not compress.
    std::string noise(64 * 1024, '\0');
    for (int i = 0; i < 16; ++i) {
        fill_random(noise.data(), noise.size());
        (void)(*capture)->input("noise", noise);
    }
    REQUIRE((*capture)->truncated().has_value());
    CHECK((*capture)->truncated() == "it reached its limit of 0 MiB");
    CHECK((*capture)->size_bytes() <= 256 * 1024 + 1024);
    CHECK((*capture)->now(Clock::monotonic) > 0);
    capture->reset();
    CHECK(CaptureFile::read(folder.file())->truncated() == "it reached its limit of 0 MiB");
}

TEST_CASE("inputs of a recording are decoded unchanged") {
    RecordingPlan plan;
    plan.target = "pid 1";
    plan.pids = {1, 4'000'000};
    plan.scope.cpus = {0, 3};
    plan.settings.filter = "a > 1";
    plan.wanted.events = {
        {"cycles", "cycles", {{"cpu_core", 0, 1, 2, 3, {0, 1}, 8}}, true, false, 2, 99, 0, 0, "", "f"}};
    plan.wanted.counters = {{plan.wanted.events.front(), true}};
    plan.settings.trace_first = 5;
    plan.wanted.events.front().traced = plan.wanted.events.front().trigger = true;
    plan.wanted.events.front().parts.front().values = std::make_shared<const perf::SampleValues>(
        perf::SampleValues{{{"size", perf::ValueKind::address, perf::ValueField::Place::rel_loc, 8, 4}}, "\"%x\""});
    plan.launched = true;
    plan.program = "/bin/true";
    const auto again = decode_plan(encode_plan(plan));
    REQUIRE(again.has_value());
    CHECK(encode_plan(*again) == encode_plan(plan));
    CHECK(again->pids == plan.pids);
    CHECK(again->wanted.events.front().parts.front().cpus == std::vector<std::uint32_t>{0, 1});
    CHECK(again->wanted.events.front().frequency_hz == 99U);
    CHECK(again->settings.trace_first == 5);
    CHECK(again->wanted.events.front().trigger);
    CHECK(again->wanted.events.front().parts.front().values->fields ==
          plan.wanted.events.front().parts.front().values->fields);

    Capabilities capabilities;
    capabilities.paranoid = -1;
    capabilities.register_arch = unwind::Arch::arm;
    CHECK(decode_capabilities(encode_capabilities(capabilities))->paranoid == -1);
    CHECK(decode_capabilities(encode_capabilities(capabilities))->register_arch == unwind::Arch::arm);

    const std::string text = encode_plan(plan);
    // Older captures end before what is traced.
    std::size_t older = 0;
    for (std::size_t size = 0; size < text.size(); ++size) {
        const auto cut = decode_plan(std::string_view(text).substr(0, size));
        if (!cut) continue;
        ++older;
        CHECK(cut->wanted.events.front().name == "cycles");
        CHECK_FALSE(cut->wanted.events.front().traced);
    }
    CHECK(older == 1);
    CHECK_FALSE(decode_plan(text + "x").has_value());
    CHECK(std::holds_alternative<BeginDelay>(*decode_command(encode_command(RecorderCommand(BeginDelay{})))));
    const auto added = decode_command(encode_command(RecorderCommand(AddProcesses{{7, 4'000'000}})));
    CHECK(std::get<AddProcesses>(*added).pids == std::vector<std::uint32_t>{7, 4'000'000});
    EventSpec spec = plan.wanted.events.front();
    spec.name = "mem:x:w";
    spec.parts = {breakpoint_part(spec.name, 0x7fff'ffff'f000, 8, 2, 4711).value()};
    const auto breakpoints = decode_command(encode_command(RecorderCommand(AddBreakpoints{{spec}})));
    const EventPart& part = std::get<AddBreakpoints>(*breakpoints).events.at(0).parts.at(0);
    CHECK((part.type == 5 && part.config1 == 0x7fff'ffff'f000 && part.config2 == 8 && process_of(part) == 4711));
    CHECK_FALSE(decode_command("\x7f").has_value());
}

}  // namespace flamewire::replay
