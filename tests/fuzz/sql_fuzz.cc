// SQL over a small profile. The text is SQL from a person, a script or later a client of the server; whatever it is, it
// must end, stay in memory and leave the profile as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profile/store/store.h"
#include "views/sql/database.h"

namespace {

using namespace flamewire;
namespace sql = views::sql;

// Two events, two threads and three stacks with an inlined function.
profile::Store small_profile() {
    wire::Batch batch;
    batch.recording_id = {7};
    batch.seq = 1;
    batch.bucket_ns = 10'000'000;
    batch.strings = {"cycles", "ns", "wall", "app", "main", "tiny", "/bin/app", "main.c"};
    batch.modules = {{.path = 7, .build_id = "ab"}};
    batch.locations = {{.module = 1, .address = 16, .name = 5, .file = 8, .line = 3},
                       {.module = 1, .address = 32, .flags = wire::location_flag::inlined, .name = 6}};
    batch.stacks = {{.parent = 0, .location = 1}, {.parent = 1, .location = 2}};
    batch.processes = {{.pid = 5, .comm = 4}};
    batch.threads = {{.process = 1, .tid = 6, .comm = 4}, {.process = 1, .tid = 7, .comm = 4}};
    batch.events = {{.name = 1, .unit = 1}, {.name = 3, .unit = 2}};
    for (std::uint32_t i = 0; i < 8; ++i)
        batch.rows.push_back({.bucket = 100 + i,
                              .event = 1 + i % 2,
                              .thread = 1 + i % 2,
                              .cpu = i % 3,
                              .stack = 1 + i % 2,
                              .count = i + 1,
                              .weight = 10 * i});
    profile::Store store;
    if (!store.apply(batch)) std::abort();
    return store;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const profile::Store store = small_profile();
    const profile::Interruption interruption;
    constexpr std::uint64_t max_steps = 100'000;
    const auto version = store.version();
    auto database = sql::Database::open({.store = store,
                                         .start_ns = 1,
                                         .started_ns = 2,
                                         .notices = {},
                                         .unwinding = {},
                                         .reports = {},
                                         .loss_reason = [](wire::LossReason) -> std::string_view { return "lost"; },
                                         .info = {}},
                                        interruption, max_steps);
    if (!database) std::abort();
    std::size_t rows = 0;
    (void)database->run({reinterpret_cast<const char*>(data), size},
                        {.begin = [](std::span<const std::string>) {},
                         .row = [&](std::span<const sql::Cell>) { return ++rows < 1000; },
                         .end = [] {}});
    if (store.version() != version || store.row_count() != 8) std::abort();
    return 0;
}
