#include "agent/pipeline/callchain.h"

#include "perf/callchain.h"

namespace flamewire::agent {

std::size_t split_callchain(std::span<const std::uint64_t> chain, bool user_mode, std::vector<ChainFrame>& frames) {
    using perf::CpuMode;
    return perf::split_callchain(chain, user_mode ? CpuMode::user : CpuMode::kernel,
                                 [&](std::uint64_t address, CpuMode mode, bool return_address) {
                                     if (mode == CpuMode::kernel || mode == CpuMode::user)
                                         frames.push_back({address, mode == CpuMode::kernel, return_address});
                                 });
}

}  // namespace flamewire::agent
