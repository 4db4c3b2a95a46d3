#include "agent/pipeline/callchain.h"

#include <catch2/catch.hpp>
#include <linux/perf_event.h>

using namespace flamewire::agent;

namespace {
// The values from the kernel's own header.
constexpr auto kernel = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
constexpr auto user = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr auto guest = static_cast<std::uint64_t>(PERF_CONTEXT_GUEST);
constexpr auto hypervisor = static_cast<std::uint64_t>(PERF_CONTEXT_HV);

std::vector<ChainFrame> split(std::vector<std::uint64_t> chain, bool user_mode, std::size_t stored) {
    std::vector<ChainFrame> frames;
    CHECK(split_callchain(chain, user_mode, frames) == stored);
    return frames;
}
}  // namespace

TEST_CASE("kernel and user parts, each with a precise first entry") {
    const std::vector<ChainFrame> expected = {{0xffffffff81000010, true, false},
                                              {0xffffffff81000020, true, true},
                                              {0x401000, false, false},
                                              {0x402000, false, true},
                                              {0x403000, false, true}};
    CHECK(split({kernel, 0xffffffff81000010, 0xffffffff81000020, user, 0x401000, 0x402000, 0x403000}, false, 5) ==
          expected);
}

TEST_CASE("parts that are unknown or empty") {
    CHECK(split({}, true, 0).empty());
    CHECK(split({kernel, user}, false, 0).empty());
    CHECK(split({kernel, 5, user}, false, 1) == std::vector<ChainFrame>{{5, true, false}});
    CHECK(split({hypervisor, 7, guest, 8, user, 9}, true, 3) == std::vector<ChainFrame>{{9, false, false}});
    CHECK(split({0x10, 0x20}, true, 2) == std::vector<ChainFrame>{{0x10, false, false}, {0x20, false, true}});
}

TEST_CASE("the zero that ends a frame-pointer chain is not a frame, but counts against the limit") {
    CHECK(split({user, 0x10, 0x20, 0}, true, 3) == std::vector<ChainFrame>{{0x10, false, false}, {0x20, false, true}});
}
