#include "perf/callchain.h"

#include <catch2/catch.hpp>

#include <tuple>
#include <vector>

using namespace flamewire::perf;

namespace {

using Frame = std::tuple<std::uint64_t, CpuMode, bool>;

std::vector<Frame> split(const std::vector<std::uint64_t>& chain, CpuMode mode, std::size_t stored) {
    std::vector<Frame> frames;
    const std::size_t found = split_callchain(chain, mode, [&](std::uint64_t address, CpuMode of, bool return_address) {
        frames.emplace_back(address, of, return_address);
    });
    CHECK(found == stored);
    return frames;
}

constexpr std::uint64_t marker(std::int64_t number) { return static_cast<std::uint64_t>(number); }

}  // namespace

TEST_CASE("frames have the mode of the marker before them") {
    using enum CpuMode;
    CHECK(split({marker(-128), 0xffff'ffff'8100'0000, 0xffff'ffff'8100'0001, marker(-512), 0x1000, 0x2000}, user, 4) ==
          std::vector<Frame>{{0xffff'ffff'8100'0000, kernel, false},
                             {0xffff'ffff'8100'0001, kernel, true},
                             {0x1000, user, false},
                             {0x2000, user, true}});
    CHECK(split({0x1000, 0, 0x3000}, user, 3) == std::vector<Frame>{{0x1000, user, false}, {0x3000, user, true}});
    CHECK(split({marker(-32), 1, marker(-2048), 2, marker(-2176), 3, marker(-2560), 4}, user, 4) ==
          std::vector<Frame>{
              {1, hypervisor, false}, {2, guest_kernel, false}, {3, guest_kernel, false}, {4, guest_user, false}});
    CHECK(split({}, user, 0).empty());
}

TEST_CASE("entries after an unknown marker are not frames") {
    using enum CpuMode;
    // PERF_CONTEXT_USER_DEFERRED of Linux 6.19: the entry is a cookie.
    CHECK(split({marker(-128), 7, marker(-640), 42}, kernel, 2) == std::vector<Frame>{{7, kernel, false}});
    CHECK(split({marker(-4095), 1, marker(-512), 2}, kernel, 2) == std::vector<Frame>{{2, user, false}});
    CHECK(deferred_cookie(std::vector<std::uint64_t>{marker(-128), 7, marker(-640), 42}) == 42);
    CHECK(deferred_cookie(std::vector<std::uint64_t>{marker(-640), 43}) == 43);
    CHECK_FALSE(deferred_cookie(std::vector<std::uint64_t>{marker(-128), 7, marker(-512), 42}));
    CHECK_FALSE(deferred_cookie(std::vector<std::uint64_t>{marker(-640), 43, 44}));
    CHECK_FALSE(deferred_cookie(std::vector<std::uint64_t>{marker(-640)}));
    CHECK_FALSE(deferred_cookie({}));
    // The largest address below the markers.
    CHECK(split({marker(-4096)}, kernel, 1) == std::vector<Frame>{{marker(-4096), kernel, false}});
}
