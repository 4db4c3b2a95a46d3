#include "unwind/join/stack_stitcher.h"

#include <catch2/catch.hpp>

#include <random>

using namespace flamewire::unwind;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t gap = 20 * ms;
constexpr std::uint64_t top = 0x7fff'0000'0000;  // where the stack starts
constexpr std::size_t depth = 1024;

// A thread that calls and returns. Walks see only a copy of the innermost bytes of its stack, as the kernel copies it.
struct Machine {
    std::vector<Frame> frames;  // outermost first

    Machine() { call(0x1000, 0); }
    void call(std::uint64_t pc, std::uint64_t frame_bytes) {
        Frame frame;
        frame.pc = pc;
        frame.sp = (frames.empty() ? top : frames.back().sp) - frame_bytes;
        if (!frames.empty()) frames.back().return_address = true;
        frame.found_by = FoundBy::rule;
        frame.pc_at = frame.sp - 8;  // as x86's call instruction pushes it
        frames.push_back(frame);
    }
    void ret() {
        frames.pop_back();
        frames.back().return_address = false;
    }
    [[nodiscard]] std::vector<std::uint64_t> truth() const {
        std::vector<std::uint64_t> pcs;
        for (std::size_t i = frames.size(); i-- > 0;) pcs.push_back(frames[i].pc);
        return pcs;
    }
    // The frames that a walk over a copy of `bytes` finds. Returns false if it reached the root.
    bool seen(std::uint64_t bytes, std::vector<Frame>& out) const {
        out.clear();
        const std::uint64_t end = frames.back().sp + bytes;
        for (std::size_t i = frames.size(); i-- > 0;) {
            out.push_back(frames[i]);
            // The return address of a frame lies just below its caller's stack pointer.
            if (i > 0 && frames[i - 1].sp > end) return true;
        }
        return false;
    }
};

std::vector<std::uint64_t> pcs(const std::vector<Frame>& frames) {
    std::vector<std::uint64_t> result;
    for (const Frame& frame : frames) result.push_back(frame.pc);
    return result;
}

struct Sampler {
    explicit Sampler(bool reads = false) {
        if (!reads) stitcher.cannot_read();
    }

    StackStitcher stitcher{gap};
    std::uint64_t now = 1000 * ms;
    std::vector<Frame> frames;

    StopReason sample(const Machine& machine, std::uint64_t bytes, std::uint64_t thread = 1, std::uint64_t space = 1) {
        now += ms;
        const StopReason walked = machine.seen(bytes, frames) ? StopReason::truncated_copy : StopReason::root;
        return stitcher.join(thread, space, now, depth, frames, walked);
    }
};

}  // namespace

TEST_CASE("a descent with samples on the way is shown whole at any depth") {
    Machine machine;
    Sampler sampler;
    machine.call(0x2000, 64);
    for (int level = 0; level < 500; ++level) {
        machine.call(0x3000, 400);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
        REQUIRE(pcs(sampler.frames) == machine.truth());
    }
    // The stack is 200,000 bytes deep. Copies of 16 KiB reach 40 frames.
    REQUIRE(sampler.stitcher.counts().joined > 400);
    REQUIRE(sampler.stitcher.counts().truncated == 0);
    REQUIRE(sampler.frames.back().found_by == FoundBy::joined);
    REQUIRE(sampler.frames.front().found_by == FoundBy::rule);
    for (int level = 0; level < 500; ++level) {
        machine.ret();
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
        REQUIRE(pcs(sampler.frames) == machine.truth());
    }
}

TEST_CASE("callers that no sample showed are not invented") {
    Machine machine;
    Sampler sampler;
    for (int level = 0; level < 100; ++level) machine.call(0x3000, 400);
    REQUIRE(sampler.sample(machine, 16'384) == StopReason::truncated_copy);
    REQUIRE(sampler.frames.size() < 50);
    REQUIRE(sampler.stitcher.counts().truncated == 1);
    // The first whole stack makes the following ones whole.
    while (machine.frames.size() > 20) machine.ret();
    REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
    for (int level = 0; level < 80; ++level) {
        machine.call(0x3000, 400);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
        REQUIRE(pcs(sampler.frames) == machine.truth());
    }
}

TEST_CASE("a thread that came down another path to the same frames gets the new callers") {
    Machine machine;
    Sampler sampler;
    const auto descend = [&](std::uint64_t caller) {
        machine.call(caller, 128);
        for (int level = 0; level < 200; ++level) {
            machine.call(0x3000, 400);
            (void)sampler.sample(machine, 16'384);
            REQUIRE(pcs(sampler.frames) == machine.truth());
        }
        while (machine.frames.size() > 1) machine.ret();  // faster than the sampling period
    };
    for (int round = 0; round < 3; ++round) {
        descend(0xaaaa);
        descend(0xbbbb);
    }
    REQUIRE(sampler.stitcher.counts().joined > 6 * 100);

    SECTION("no callers if samples are missing where the path could have changed") {
        machine.call(0xaaaa, 128);
        for (int level = 0; level < 200; ++level) {
            machine.call(0x3000, 400);
            (void)sampler.sample(machine, 16'384);
        }
        while (machine.frames.size() > 1) machine.ret();
        machine.call(0xbbbb, 128);
        for (int level = 0; level < 200; ++level) machine.call(0x3000, 400);
        SECTION("because they were lost") { sampler.stitcher.samples_lost(); }
        SECTION("because nothing was sampled for a while") { sampler.now += 2 * gap; }
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::truncated_copy);
        REQUIRE(sampler.stitcher.counts().ambiguous == 1);
    }
}

TEST_CASE("after an unseen leap, a thread is not trusted where it could leap again") {
    Machine machine;
    const bool reads = GENERATE(false, true);
    Sampler sampler(reads);
    std::uint64_t wrong = 0;
    const auto sampled = [&] {
        const StopReason stop = sampler.sample(machine, 16'384);
        if (stop == StopReason::root && pcs(sampler.frames) != machine.truth()) ++wrong;
    };
    for (int round = 0; round < 5; ++round) {
        wrong = 0;
        machine.call(0xaaaa, 128);
        for (int level = 0; level < 200; ++level) {
            machine.call(0x3000, 400);
            sampled();
        }
        while (machine.frames.size() > 1) machine.ret();  // and down another path, all within one period
        machine.call(0xbbbb, 128);
        for (int level = 0; level < 200; ++level) machine.call(0x3000, 400);
        for (int level = 0; level < 200; ++level) {
            machine.ret();
            sampled();
        }
        machine.ret();
        // Samples alone cannot detect the first leap. With memory reads, nothing is trusted before it is proven.
        REQUIRE((wrong > 0) == (round == 0 && !reads));
    }
}

TEST_CASE("after an unseen leap, a thread is trusted only across longer ways than that leap") {
    Machine machine;
    Sampler sampler;
    machine.call(0xaaaa, 128);
    for (int level = 0; level < 42; ++level) {
        machine.call(0x3000, 400);
        (void)sampler.sample(machine, 16'384);
    }
    // To the root and down again between two samples: 41 frames out to the first frame with another caller, and 41 in.
    while (machine.frames.size() > 1) machine.ret();
    machine.call(0xbbbb, 128);
    for (int level = 0; level < 42; ++level) machine.call(0x3000, 400);
    // The copy reaches 40 frames, so the second of these samples shows the leap.
    for (int level = 0; level < 2; ++level) {
        machine.ret();
        (void)sampler.sample(machine, 16'384);
    }
    REQUIRE(pcs(sampler.frames) == machine.truth());
    const int frames_in = GENERATE(43, 44);
    for (int level = 39; level < frames_in; ++level) machine.call(0x3000, 400);
    // 39 frames out, and 43 or 44 in.
    REQUIRE(sampler.sample(machine, 16'384) == (frames_in == 43 ? StopReason::truncated_copy : StopReason::root));
    REQUIRE((frames_in == 43 || pcs(sampler.frames) == machine.truth()));
}

TEST_CASE("memory reads can refute stored frames") {
    Machine machine;
    Sampler sampler(true);
    std::vector<StackPlace> places;
    machine.call(0xaaaa, 128);
    for (int level = 0; level < 50; ++level) {
        machine.call(0x3000, 400);
        (void)sampler.sample(machine, 16'384);
    }
    REQUIRE(sampler.sample(machine, 16'384) == StopReason::truncated_copy);  // nothing is proven yet
    for (int level = 0; level < 50; ++level) {
        machine.ret();
        (void)sampler.sample(machine, 16'384);
    }
    for (int level = 0; level < 100; ++level) {
        machine.call(0x3000, 400);
        (void)sampler.sample(machine, 16'384);
    }
    REQUIRE(sampler.stitcher.due_for_read(8) == std::vector<std::uint64_t>{1});
    sampler.stitcher.places_of(1, 8, places);
    REQUIRE(places.size() == 8);
    REQUIRE((places[0].address == top - 8 && places[0].value == 0x1000));
    REQUIRE((places[1].address == top - 128 - 8 && places[1].value == 0xaaaa));
    REQUIRE((places[2].address == top - 528 - 8 && places[2].value == 0x3000));

    SECTION("the same values change nothing") {
        sampler.stitcher.memory_read(1, sampler.now, places);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
        REQUIRE(sampler.stitcher.counts().reads == 1);
    }
    SECTION("other values count from the time of the read") {
        places[1].value = 0xbbbb;
        sampler.stitcher.memory_read(1, sampler.now + 2 * ms, places);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::truncated_copy);
        REQUIRE(sampler.stitcher.counts().refuted == 1);
        // Frames inside of the refuted one have had two callers, and the thread went all the way between two samples.
        // So it is not trusted from now on.
        for (int level = 0; level < 100; ++level) machine.ret();
        (void)sampler.sample(machine, 16'384);
        for (int level = 0; level < 100; ++level) {
            machine.call(0x3000, 400);
            const StopReason expected = level < 40 ? StopReason::root : StopReason::truncated_copy;
            REQUIRE(sampler.sample(machine, 16'384) == expected);
        }
    }
    SECTION("a value for a frame that is no longer stored is ignored") {
        for (int level = 0; level < 100; ++level) machine.ret();
        machine.ret();
        machine.call(0xcccc, 128);
        (void)sampler.sample(machine, 16'384);
        places[1].value = 0xcccc;
        places.resize(2);
        sampler.stitcher.memory_read(1, sampler.now, places);
        (void)sampler.sample(machine, 16'384);
        REQUIRE(sampler.stitcher.counts().refuted == 0);
    }
}

TEST_CASE("a thread as fast as its stack is deep is trusted only after memory reads") {
    Machine machine;
    Sampler sampler(true);
    std::vector<StackPlace> places;
    machine.call(0xaaaa, 128);
    const auto descend = [&] {
        while (machine.frames.size() > 2) machine.ret();
        for (int level = 0; level < 3; ++level) machine.call(0x3000, 400);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
        for (int level = 0; level < 200; ++level) machine.call(0x3000, 400);
        (void)sampler.sample(machine, 16'384);
        machine.frames.resize(5);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
        for (int level = 0; level < 35; ++level) machine.call(0x3000, 400);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
        for (int level = 0; level < 20; ++level) machine.call(0x3000, 400);
    };
    descend();
    descend();
    for (int look = 0; look < 6; ++look) {
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::truncated_copy);
        sampler.stitcher.places_of(1, 1024, places);
        REQUIRE(places.size() > 10);
        sampler.stitcher.memory_read(1, sampler.now, places);
    }
    sampler.stitcher.memory_read(1, sampler.now + 2 * ms, places);
    REQUIRE(sampler.sample(machine, 16'384) == StopReason::root);
    REQUIRE(pcs(sampler.frames) == machine.truth());
    SECTION("a value that changed by the next read ends the trust") {
        places[1].value = 0xbbbb;
        sampler.stitcher.memory_read(1, sampler.now + 9 * ms, places);
        (void)sampler.sample(machine, 16'384);
        REQUIRE(sampler.sample(machine, 16'384) == StopReason::truncated_copy);
        REQUIRE(sampler.stitcher.counts().refuted == 0);
    }
    SECTION("without memory reads, samples suffice") {
        Sampler other;
        machine.frames.resize(5);
        REQUIRE(other.sample(machine, 16'384) == StopReason::root);
        for (int level = 0; level < 35; ++level) machine.call(0x3000, 400);
        REQUIRE(other.sample(machine, 16'384) == StopReason::root);
        for (int level = 0; level < 20; ++level) machine.call(0x3000, 400);
        REQUIRE(other.sample(machine, 16'384) == StopReason::root);
    }
}

TEST_CASE("callers of the frame that a handler on its own stack interrupted") {
    Machine machine;
    Sampler sampler;
    machine.call(0x2000, 128);
    machine.call(0x3000, 64);
    machine.call(0x4000, 64);
    (void)sampler.sample(machine, 16'384);
    const std::uint64_t pc_at = top - 192 - 8;  // where the call in 0x3000 stored its return address
    const auto last = sampler.stitcher.last_called(1, 1, sampler.now + ms, pc_at);
    REQUIRE(last);
    REQUIRE(last->pc == 0x4000);
    REQUIRE_FALSE(last->return_address);
    // Handler, the kernel's return from it, interrupted frame.
    std::vector<Frame> frames(3);
    frames[0].sp = 0x1000;
    frames[1].sp = 0x1100;
    frames[2] = {.pc = 0x4040, .sp = top - 256, .found_by = FoundBy::signal};
    SECTION("the callers are those of the last sample") {
        REQUIRE(sampler.stitcher.with_callers(1, sampler.now + ms, pc_at, depth, frames) == StopReason::root);
        REQUIRE(frames.size() == 6);
        REQUIRE((frames[3].pc == 0x3000 && frames[4].pc == 0x2000 && frames[5].pc == 0x1000));
        REQUIRE((frames[3].return_address && frames[3].found_by == FoundBy::joined));
        REQUIRE(sampler.stitcher.counts().joined == 1);
    }
    SECTION("stops at the frame limit") {
        REQUIRE(sampler.stitcher.with_callers(1, sampler.now + ms, pc_at, 4, frames) == StopReason::max_depth);
        REQUIRE(frames.size() == 4);
    }
    SECTION("none without a matching stored frame") {
        CHECK_FALSE(sampler.stitcher.last_called(1, 1, sampler.now + ms, pc_at - 8));
        // This frame had not called anything.
        CHECK_FALSE(sampler.stitcher.last_called(1, 1, sampler.now + ms, top - 256 - 8));
        CHECK_FALSE(sampler.stitcher.last_called(1, 1, sampler.now + 2 * gap, pc_at));
        CHECK_FALSE(sampler.stitcher.last_called(1, 2, sampler.now + ms, pc_at));
        CHECK_FALSE(sampler.stitcher.last_called(2, 1, sampler.now + ms, pc_at));
        sampler.stitcher.samples_lost();
        CHECK_FALSE(sampler.stitcher.last_called(1, 1, sampler.now + ms, pc_at));
    }
}

TEST_CASE("frames below a sample's stack pointer have ended") {
    Machine machine;
    Sampler sampler;
    machine.call(0xaaaa, 128);
    for (int level = 0; level < 100; ++level) {
        machine.call(0x3000, 400);
        (void)sampler.sample(machine, 16'384);
    }
    while (machine.frames.size() > 1) machine.ret();
    (void)sampler.sample(machine, 16'384);  // at the outermost frame
    machine.call(0xbbbb, 128);
    for (int level = 0; level < 100; ++level) machine.call(0x3000, 400);
    REQUIRE(sampler.sample(machine, 16'384) == StopReason::truncated_copy);
}

TEST_CASE("threads and address spaces are independent") {
    Machine machine;
    Sampler sampler;
    for (int level = 0; level < 100; ++level) {
        machine.call(0x3000, 400);
        (void)sampler.sample(machine, 16'384, 1, 7);
    }
    REQUIRE(sampler.sample(machine, 16'384, 2, 7) == StopReason::truncated_copy);
    REQUIRE(sampler.sample(machine, 16'384, 1, 8) == StopReason::truncated_copy);
    sampler.stitcher.forget(1);
    REQUIRE(sampler.sample(machine, 16'384, 1, 8) == StopReason::truncated_copy);
}

TEST_CASE("a completed stack ends at the frame limit") {
    Machine machine;
    StackStitcher stitcher{gap};
    stitcher.cannot_read();
    std::vector<Frame> frames;
    std::uint64_t now = 0;
    StopReason stop = StopReason::root;
    for (int level = 0; level < 100; ++level) {
        machine.call(0x3000, 400);
        const bool cut = machine.seen(16'384, frames);
        stop = stitcher.join(1, 1, now += ms, 64, frames, cut ? StopReason::truncated_copy : StopReason::root);
    }
    REQUIRE(stop == StopReason::max_depth);
    REQUIRE(frames.size() == 64);
}

TEST_CASE("other stop reasons are left unchanged") {
    StackStitcher stitcher{gap};
    std::vector<Frame> frames(3);
    for (std::size_t i = 0; i < frames.size(); ++i) frames[i].sp = 0x1000 + 64 * i;
    for (const StopReason stop : {StopReason::no_map, StopReason::no_info, StopReason::bad_read, StopReason::max_depth,
                                  StopReason::not_advancing, StopReason::chain_end})
        REQUIRE(stitcher.join(1, 1, ms, depth, frames, stop) == stop);
    REQUIRE(frames.size() == 3);
    std::vector<Frame> none;
    REQUIRE(stitcher.join(1, 1, ms, depth, none, StopReason::truncated_copy) == StopReason::truncated_copy);
}

TEST_CASE("memory stays within its limit whatever the threads do") {
    constexpr std::size_t limit = 256 << 10;
    StackStitcher stitcher{gap, limit};
    std::mt19937 random(1);
    std::vector<Frame> frames;
    for (std::uint64_t round = 0; round < 2000; ++round) {
        frames.resize(1 + random() % 2000);
        for (std::size_t i = 0; i < frames.size(); ++i) {
            frames[i].sp = 0x1000 + 32 * i;
            frames[i].pc = random() % 64;
        }
        const std::uint64_t thread = random() % 500;
        (void)stitcher.join(thread, random() % 2, round * ms, depth, frames,
                            random() % 2 == 0 ? StopReason::root : StopReason::truncated_copy);
        if (round % 3 == 0) stitcher.record(thread, frames, frames.size() / 2);
        // Also for threads that are never seen again.
        std::vector<StackPlace> places(random() % 1024 + 1);
        for (std::size_t i = 0; i < places.size(); ++i) places[i] = {0x100000 - 32 * i, random() % 64};
        stitcher.memory_read(random() % 500, (round + random() % 3) * ms, places);
    }
    // The table of callers has its own size.
    REQUIRE(stitcher.memory_bytes() < limit + (256 << 10));
}
