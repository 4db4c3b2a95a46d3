// Builds batches as an agent does: it keeps the tables of an epoch, assigns ids, and take() returns the new entries. It
// also has helpers for tests of the store: a symbolizer with given names, and trees as text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profile/query/query.h"
#include "profile/store/store.h"
#include "wire/batch.h"

namespace flamewire::profile {

class BatchMaker {
public:
    BatchMaker() { batch_.recording_id = {7}; }

    wire::Id string(const std::string& text);
    wire::Id module(const std::string& path, const std::string& build_id = "",
                    wire::ModuleKind kind = wire::ModuleKind::file);
    wire::Id add(const wire::Module& module);
    wire::Id location(wire::Id module, std::uint64_t address, std::uint32_t flags = 0);
    wire::Id named(const std::string& name, wire::Id module = 0, std::uint32_t flags = 0, const std::string& file = "",
                   std::uint32_t line = 0);
    wire::Id stack(const std::vector<wire::Id>& outermost_first);
    wire::Id process(std::uint32_t pid, std::uint64_t start_time_ns = 1, std::uint32_t exec_generation = 0,
                     const std::string& comm = "app");
    wire::Id thread(wire::Id process, std::uint32_t tid, const std::string& comm = "app");
    wire::Id event(const std::string& name, const std::string& unit, std::uint64_t period = 1);
    void row(std::uint64_t bucket, wire::Id event, wire::Id thread, wire::Id stack, std::uint32_t count = 1,
             std::uint64_t weight = 0, std::uint32_t cpu = 0);

    wire::Batch& batch() { return batch_; }
    // Returns the batch so far. The next one continues the epoch.
    wire::Batch take();
    // Like take(), but the next batch begins an epoch with empty tables.
    wire::Batch take_and_end_epoch();

private:
    wire::Batch batch_;
    std::map<std::string, wire::Id> strings_;
    std::map<std::pair<wire::Id, wire::Id>, wire::Id> stacks_;
};

// Two events, two threads, a module with an inlined function, and kernel code. `wall_weight`: of the one wall sample.
inline wire::Batch mixed_batch(const std::string& library_path, std::uint64_t wall_weight) {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles"), wall = maker.event("wall", "ns");
    const wire::Id process = maker.process(5);
    const wire::Id one = maker.thread(process, 6, "pool"), two = maker.thread(process, 7, "main");
    const wire::Id library = maker.module(library_path, "ab");
    const wire::Id main = maker.named("main", library, 0, "main.c", 3);
    const wire::Id tiny = maker.named("tiny", library, wire::location_flag::inlined, "tiny.h", 9);
    const wire::Id module =
        maker.named("ext4_read [ext4]", maker.module("[kernel.kallsyms]", "", wire::ModuleKind::kernel));
    maker.row(100, cycles, one, maker.stack({main, tiny, module}), 2, 20);
    maker.row(300, cycles, two, maker.stack({main}), 3, 30);
    maker.row(200, wall, two, maker.stack({main, tiny}), 1, wall_weight);
    return maker.take();
}

struct KnownFrame {
    std::string function, file;
    std::uint32_t line = 0;
    bool inlined = false;
};
// By the looked-up address (address - 1 for a return address), innermost frame first.
using KnownFrames = std::map<std::uint64_t, std::vector<KnownFrame>>;

symbol::Resolved answer(const PendingModule& pending, const KnownFrames& known);
// Calls take_pending() and set_frames() for all modules. Returns the number of requested addresses.
std::size_t symbolize(Store& store, const KnownFrames& known);

// One line "name self/total" per node, in samples. Children are indented. ~ marks inlined and ? unknown names.
std::string show(const Store& store, const CallTree& tree);
// "name self/total;…" in table order.
std::string show(const Store& store, const std::vector<FunctionRow>& rows);

}  // namespace flamewire::profile
