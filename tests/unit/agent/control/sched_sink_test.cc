// The table of --stat sched, which is printed when the recording ends.
#include "agent/control/sched_sink.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <cstdio>

#include "base/fd.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// The standard output of `work`.
template <class Work>
std::string printed(Work work) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    std::fflush(stdout);
    const UniqueFd reading(ends[0]), original(::dup(STDOUT_FILENO));
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    work();
    ::dup2(original.get(), STDOUT_FILENO);
    std::string text(1 << 16, '\0');
    const ssize_t count = ::read(reading.get(), text.data(), text.size());
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
}

wire::ThreadTimes times(wire::Id thread, std::uint64_t run_ms, std::uint64_t blocked_ms) {
    wire::ThreadTimes times;
    times.thread = thread;
    times.state_ns = {run_ms * 1'000'000, 0, blocked_ms * 1'000'000, 0};
    return times;
}

// A batch without times ends the table.
wire::Batch end() {
    wire::Batch batch;
    batch.epoch = 2;
    batch.end = wire::End{"stopped", 0};
    return batch;
}

}  // namespace

TEST_CASE("threads are listed by their time awake, with their last names, across epochs") {
    SchedSink sink(false);
    wire::Batch first;
    first.epoch = 1;
    first.strings = {"shell", "worker", "idler"};
    first.threads = {{1, 7, 1}, {1, 8, 3}};
    first.thread_times = {times(1, 10, 5), times(2, 20, 70)};
    wire::Batch renamed;
    renamed.epoch = 1;
    renamed.lifecycle = {{wire::LifecycleKind::comm, 5, 1, 2}, {wire::LifecycleKind::exit, 6, 2, 0}};
    wire::Batch second;
    second.epoch = 2;
    second.strings = {"worker"};
    second.threads = {{1, 7, 1}};
    second.thread_times = {times(1, 30, 5)};
    wire::Batch last = end();
    std::string table;
    CHECK(printed([&] {
              (void)sink.push(first, {});
              (void)sink.push(renamed, {});
              (void)sink.push(second, {});
          }).empty());
    table = printed([&] { (void)sink.push(last, {}); });
    INFO(table);
    CHECK(table.find("shell") == std::string::npos);
    const std::size_t worker = table.find("worker"), idler = table.find("idler");
    REQUIRE(worker != std::string::npos);
    REQUIRE(idler != std::string::npos);
    CHECK(worker < idler);
    CHECK(table.find("worker", worker + 1) == std::string::npos);
    CHECK(table.find("40.000", worker) < idler);  // ran for 10 and 30 ms
    CHECK(table.find("20.000", idler) != std::string::npos);
}
