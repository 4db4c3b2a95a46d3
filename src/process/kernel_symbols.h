// Code that is loaded into the kernel or removed while a recording runs, from PERF_RECORD_KSYMBOL: BPF programs,
// trampolines and probes. Code that is loaded the whole time is in /proc/kallsyms, like all other kernel names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "perf/record.h"

namespace flamewire::process {

class KernelSymbols {
public:
    // `limit`: the most symbols that it keeps.
    explicit KernelSymbols(std::size_t limit) : limit_(limit) {}

    // False: code was removed that no record loaded.
    bool follow(const perf::KsymbolRecord& record, std::string_view name) {
        const auto after = symbols_.lower_bound(record.address);
        if (record.gone) {
            const bool known = after != symbols_.end() && after->first == record.address;
            if (known) symbols_.erase(after);
            return known;
        }
        if (symbols_.size() < limit_) symbols_[record.address] = {record.size, std::string(name)};
        return true;
    }
    // The name of the code at an address now. Empty if there is none that a record loaded.
    [[nodiscard]] std::string_view name_at(std::uint64_t address) const {
        auto at = symbols_.upper_bound(address);
        if (at == symbols_.begin()) return {};
        --at;
        if (address - at->first >= at->second.size) return {};
        return at->second.name;
    }

private:
    struct Symbol {
        std::uint64_t size = 0;
        std::string name;
    };
    std::map<std::uint64_t, Symbol> symbols_;  // by address; they do not overlap
    std::size_t limit_;
};

}  // namespace flamewire::process
