// Recordings of a real busy process, with sinks that refuse, fail or store batches. Every sample that was read must be
// in a row or counted as lost.
#include <catch2/catch.hpp>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "../../agent_perf/old_kernel.h"
#include "../../agent_perf/record_bytes.h"
#include "../recorded.h"
#include "agent/control/output.h"
#include "base/clock.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

void check_accounts(const Recorder& recorder, const MemorySink& sink) {
    INFO(recorder.account_line());
    CHECK(recorder.account_line().find("DIFFER") == std::string::npos);
    const Accounting counts = recorder.accounting();
    CHECK(counts.rows_samples == sink.samples());
    CHECK(counts.samples_read - counts.samples_duplicate == sink.samples() + counts.samples_dropped);
    REQUIRE_FALSE(sink.batches.empty());
    std::uint64_t seq = 0;
    for (const wire::Batch& batch : sink.batches) CHECK(batch.seq == ++seq);
    REQUIRE(sink.batches.front().recording.has_value());
    CHECK(sink.batches.front().recording->target == "the burner");
    REQUIRE(sink.batches.back().end.has_value());
    REQUIRE(sink.batches.back().agent.has_value());
    CHECK(sink.batches.back().agent->samples_read == counts.samples_read);
}

}  // namespace

TEST_CASE("a recording from start to stop") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    const auto recorder = record(plan_for(burner.pid()), sink);
    CHECK(recorder->running().events == std::vector<std::string>{"cpu-clock"});
    CHECK(soon([&] { return recorder->accounting().rows_samples > 50; }));
    CHECK_FALSE(recorder->ended().has_value());
    recorder->stop("stopped", 5);
    check_accounts(*recorder, sink);
    CHECK(sink.batches.back().end->reason == "stopped");
    CHECK(sink.batches.back().end->exit_code == 5);
    CHECK(sink.batches.back().agent->queue_batches >= 3);
    CHECK(sink.batches.back().agent->spool_bytes == 77);
    CHECK(sink.batches.back().agent->cpu_ns > 0);
    CHECK(sink.batches.back().agent->rss_bytes > 100'000);
    REQUIRE(recorder->ended().has_value());
    CHECK_FALSE(recorder->execute(Pause{}).has_value());
    recorder->stop("again", 0);
    CHECK(recorder->ended()->reason == "stopped");
}

TEST_CASE("a recording of a sleeping process costs almost nothing") {
    if (!perf_works()) return;
    const pid_t sleeper = ::fork();
    if (sleeper == 0) {
        ::alarm(60);
        for (;;) ::pause();
    }
    MemorySink sink;
    RecordingPlan plan = plan_for(static_cast<std::uint32_t>(sleeper));
    plan.settings.interval_ms = 250;
    {
        const auto recorder = record(std::move(plan), sink);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until the start is over
        const std::uint64_t before = process_cpu_ns();
        std::this_thread::sleep_for(std::chrono::seconds(1));
        // The test's own CPU time, which other load does not affect. A loop without pauses would use the whole second.
        CHECK(process_cpu_ns() - before < 50'000'000);
        recorder->stop("stopped", 0);
    }
    ::kill(sleeper, SIGKILL);
    ::waitpid(sleeper, nullptr, 0);
}

TEST_CASE("a full sink loses nothing") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    sink.refusals = 12;
    const auto recorder = record(plan_for(burner.pid()), sink);
    CHECK(soon([&] { return recorder->accounting().rows_samples > 200; }));
    recorder->stop("stopped", 0);
    check_accounts(*recorder, sink);
    CHECK(recorder->accounting().samples_dropped == 0);
}

TEST_CASE("a failing sink ends the recording with its error") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    std::atomic<bool> ended{false};
    const auto recorder = record(plan_for(burner.pid()), sink, [&] { ended = true; });
    CHECK(soon([&] { return recorder->accounting().batches > 0; }));
    sink.broken = true;
    CHECK(soon([&] { return ended.load(); }));
    REQUIRE(recorder->ended().has_value());
    REQUIRE(recorder->ended()->error.has_value());
    CHECK(recorder->ended()->error->message == "no space");

    MemorySink dead;
    dead.broken = true;
    auto refused = Recorder::open(plan_for(burner.pid()), here(), describe_machine(), dead, {});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message == "broken from the start");
}

TEST_CASE("the end of the target ends the recording") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    std::atomic<bool> ended{false};
    const auto recorder = record(plan_for(burner.pid()), sink, [&] { ended = true; });
    CHECK(soon([&] { return recorder->accounting().rows_samples > 20; }));
    burner.stop();
    CHECK(soon([&] { return ended.load(); }));
    REQUIRE(recorder->ended().has_value());
    CHECK(recorder->ended()->reason == "target exited");
    recorder->stop("too late", 0);
    check_accounts(*recorder, sink);
    CHECK(sink.batches.back().end->reason == "target exited");
}

TEST_CASE("a throttle counts for the event whose id it has, and for no event if the id is unknown") {
    OldKernel fake(linux_6_1);
    const Kernel calls = fake.calls();
    const Burner burner;
    MemorySink sink;
    auto recorder = Recorder::open(plan_for(burner.pid(), "cpu-clock,page-faults"),
                                   read_capabilities(real_sysfs(), calls), describe_machine(), sink, {}, {{}, &calls});
    REQUIRE(recorder.has_value());
    const auto faults = std::ranges::find_if(fake.events, [](const auto& entry) {
        return entry.second.attr.type == PERF_TYPE_SOFTWARE && entry.second.attr.config == PERF_COUNT_SW_PAGE_FAULTS;
    });
    REQUIRE(faults != fake.events.end());
    constexpr std::uint64_t foreign_id = 999'999;
    std::vector<std::uint64_t> words;
    for (const std::uint64_t id : {static_cast<std::uint64_t>(faults->first), foreign_id, foreign_id}) {
        const auto throttle =
            RecordBytes(PERF_RECORD_THROTTLE, 0).u64(1).u64(id).u64(0).trailer(burner.pid(), burner.pid(), 1, 0, id);
        for (const std::uint64_t word : throttle.words()) words.push_back(word);
    }
    auto* page = static_cast<perf_event_mmap_page*>(fake.events.at(faults->second.output).memory);
    std::memcpy(reinterpret_cast<char*>(page) + fake.page_size, words.data(), words.size() * sizeof words[0]);
    __atomic_store_n(&page->data_head, words.size() * sizeof words[0], __ATOMIC_RELEASE);
    (*recorder)->stop("stopped", 0);
    std::map<wire::Id, std::uint64_t> throttled;  // by event; page-faults is the second one
    for (const wire::Batch& batch : sink.batches)
        for (const wire::Loss& loss : batch.losses)
            if (loss.reason == wire::LossReason::throttled) throttled[loss.event] += loss.count;
    CHECK(throttled == std::map<wire::Id, std::uint64_t>{{0, 2}, {2, 1}});
}

TEST_CASE("pause, resume and change keep the accounts of one recording consistent") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    const auto recorder = record(plan_for(burner.pid()), sink);
    CHECK(soon([&] { return recorder->accounting().rows_samples > 20; }));
    REQUIRE(recorder->execute(Pause{}).has_value());
    CHECK(recorder->paused());
    ::usleep(150'000);  // until the rings are empty
    const std::uint64_t paused_at = recorder->accounting().samples_read;
    ::usleep(150'000);
    CHECK(recorder->accounting().samples_read == paused_at);
    REQUIRE(recorder->execute(Resume{}).has_value());
    CHECK(soon([&] { return recorder->accounting().samples_read > paused_at + 20; }));

    Settings faster = recorder->running().settings;
    faster.frequency_hz = 1999;
    faster.events = "cpu-clock:u,task-clock";
    auto wanted = parse_requested(faster, real_sysfs());
    REQUIRE(wanted.has_value());
    REQUIRE(recorder->execute(std::make_shared<const Change>(faster, *wanted, here())).has_value());
    CHECK(recorder->running().events == std::vector<std::string>{"cpu-clock:u", "task-clock"});
    const std::uint64_t changed_at = recorder->accounting().samples_read;
    CHECK(soon([&] { return recorder->accounting().samples_read > changed_at + 100; }));

    Settings wrong = faster;
    wrong.frequency_hz = 0;
    CHECK_FALSE(recorder->execute(std::make_shared<const Change>(wrong, *wanted, here()))
                    .has_value());  // the old events continue
    const std::uint64_t refused_at = recorder->accounting().samples_read;
    CHECK(soon([&] { return recorder->accounting().samples_read > refused_at + 20; }));

    recorder->stop("stopped", 0);
    check_accounts(*recorder, sink);
    std::size_t recordings = 0, events_sent = 0;
    for (const wire::Batch& batch : sink.batches) {
        recordings += batch.recording.has_value();
        events_sent += batch.events.size();
    }
    CHECK(recordings == 2);
    CHECK(events_sent == 3);
    CHECK(recorder->accounting().samples_lost == 0);
}

TEST_CASE("a change of the target within the same recording") {
    if (!perf_works()) return;
    Burner first, second;
    MemorySink sink;
    const auto recorder = record(plan_for(first.pid()), sink);
    CHECK(soon([&] { return recorder->accounting().rows_samples > 20; }));
    const Running before = recorder->running();
    RequestedEvents wanted = parse_requested(before.settings, real_sysfs()).value();
    REQUIRE(recorder
                ->execute(std::make_shared<const Change>(before.settings, wanted, here(),
                                                         RecordingTarget{"the other", {second.pid()}}))
                .has_value());
    CHECK(recorder->running().target == "the other");
    CHECK(recorder->running().pids == std::vector{second.pid()});
    CHECK(recorder->running().recording_id == before.recording_id);
    const std::uint64_t then = recorder->accounting().rows_samples;
    CHECK(soon([&] { return recorder->accounting().rows_samples > then + 40; }));
    // A target that does not exist is refused, and the current one continues.
    CHECK_FALSE(recorder
                    ->execute(std::make_shared<const Change>(before.settings, wanted, here(),
                                                             RecordingTarget{"none", {4'194'304}}))
                    .has_value());
    CHECK(recorder->running().target == "the other");
    const std::uint64_t still = recorder->accounting().rows_samples;
    CHECK(soon([&] { return recorder->accounting().rows_samples > still + 20; }));
    recorder->stop("stopped", 0);
    const Accounting counts = recorder->accounting();
    CHECK(counts.samples_read - counts.samples_duplicate == sink.samples() + counts.samples_dropped);
    // The description has the time of the change and the length of the gap.
    const auto changed = std::ranges::find_if(
        sink.batches, [](const auto& batch) { return batch.recording && batch.recording->changed_ns != 0; });
    REQUIRE(changed != sink.batches.end());
    CHECK(changed->recording->target == "the other");
    CHECK(changed->recording->gap_ns > 0);
    CHECK(sink.batches.front().recording->changed_ns == 0);
}

TEST_CASE("an exited pid") {
    if (!perf_works()) return;
    std::uint32_t gone = 0;
    {
        Burner burner;
        gone = burner.pid();
    }
    MemorySink sink;
    auto refused = Recorder::open(plan_for(gone), here(), describe_machine(), sink, {});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::not_found);
}

TEST_CASE("session files: no overwriting, valid at any moment, an error on a full disk") {
    const std::string directory =
        std::filesystem::temp_directory_path() / ("recorder_test_" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory);
    const std::string path = directory + "/a.flw";
    wire::Batch batch;
    batch.recording_id = {1};
    batch.seq = 1;
    {
        FileSink sink(path, false);
        CHECK(sink.check().has_value());
        CHECK_FALSE(std::filesystem::exists(path));
        REQUIRE(sink.begin({}).has_value());
        REQUIRE(sink.push(batch, {}).has_value());
        // Read while it is still open: hello, then the batch.
        auto reader = wire::SessionReader::open(path);
        REQUIRE(reader.has_value());
        auto hello = reader->next();
        REQUIRE((hello.has_value() && hello->has_value()));
        CHECK((*hello)->frame.flag == wire::Flag::reply);
        CHECK(wire::parse_hello((*hello)->frame.payload).has_value());
        auto first = reader->next();
        REQUIRE((first.has_value() && first->has_value()));
        auto bytes = wire::batch_bytes((*first)->frame);
        REQUIRE(bytes.has_value());
        auto header = wire::peek_header(as_bytes_view(*bytes));
        INFO((header ? std::string() : header.error().message));
        REQUIRE(header.has_value());
        CHECK(header->seq == 1);
        CHECK_FALSE(reader->next()->has_value());
    }
    FileSink again(path, false);
    REQUIRE_FALSE(again.begin({}).has_value());
    CHECK(again.check().error().message.find("--force") != std::string::npos);
    FileSink forced(path, true);
    CHECK(forced.begin({}).has_value());
    forced.discard();
    CHECK_FALSE(std::filesystem::exists(path));
    FileSink nowhere(directory + "/no/such/file", false);
    CHECK_FALSE(nowhere.begin({}).has_value());
    FileSink into_directory(directory, false);
    CHECK_FALSE(into_directory.check().has_value());
    FileSink full("/dev/full", false);
    auto refused = full.begin({});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find("No space left") != std::string::npos);
    std::filesystem::remove_all(directory);
}

TEST_CASE("processes beyond the limit of a recording are left out, with one notice") {
    if (!perf_works()) return;
    Burner burner;
    MemorySink sink;
    const auto recorder = record(plan_for(burner.pid()), sink);
    constexpr std::uint32_t above_all_pids = 1U << 30;
    AddProcesses many;
    for (std::uint32_t i = 0; i < limits::max_pids; ++i) many.pids.push_back(above_all_pids + i);
    REQUIRE(recorder->execute(many).has_value());
    recorder->stop("stopped", 0);
    std::vector<std::string> notices;
    for (const wire::Batch& batch : sink.batches)
        for (const wire::Notice& notice : batch.notices)
            if (notice.code == "processes-limit") notices.push_back(notice.text);
    CHECK(notices == std::vector<std::string>{"More than 256 processes have this name; the others are not recorded."});
}
