#include "agent/recording/kernel_names_pass.h"

#include <utility>
#include <vector>

#include "base/clock.h"

namespace flamewire::agent {

void KernelNamesPass::begin_if_due(std::uint64_t now_ns) {
    if (requested_ && rate_limit_.may_begin(now_ns) && !active()) begin();
}

void KernelNamesPass::begin() {
    requested_ = false;
    rate_limit_.begin(monotonic_ns());
    std::vector<std::uint64_t> addresses = folder_.unnamed_kernel_addresses();
    if (!addresses.empty()) processes_.begin_kernel_symbols(std::move(addresses));
}

void KernelNamesPass::advance(std::uint64_t deadline_ns) {
    const std::uint64_t before = thread_cpu_ns();
    const std::vector<TargetSymbol> symbols = processes_.advance_kernel_symbols(deadline_ns);
    rate_limit_.spend(monotonic_ns(), thread_cpu_ns() - before);
    batch_.add_symbols(symbols);
}

}  // namespace flamewire::agent
