// BPF programs that are loaded or unloaded while a recording runs, from PERF_RECORD_KSYMBOL. Programs that are loaded
// the whole time are in /proc/kallsyms, like all other kernel names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "perf/record.h"

namespace flamewire::process {

class KernelSymbols {
public:
    // The name as in kallsyms.
    static std::string full_name(std::string_view name) { return std::string(name) + " [bpf]"; }

    // False: a program was unloaded that was loaded before the recording.
    bool follow(const perf::KsymbolRecord& record) {
        constexpr std::size_t max_programs = 16'384;
        const auto after = programs_.lower_bound(record.address);
        if (record.gone) {
            const bool known = after != programs_.end() && after->first == record.address;
            if (known) programs_.erase(after);
            return known;
        }
        if (programs_.size() < max_programs) programs_[record.address] = {record.size, full_name(record.name)};
        return true;
    }
    // The name of the program at an address now. Empty if there is none that was loaded during the recording.
    [[nodiscard]] std::string_view name_at(std::uint64_t address) const {
        auto at = programs_.upper_bound(address);
        if (at == programs_.begin()) return {};
        --at;
        if (address - at->first >= at->second.size) return {};
        return at->second.name;
    }

private:
    struct Program {
        std::uint64_t size = 0;
        std::string name;
    };
    std::map<std::uint64_t, Program> programs_;  // by address; they do not overlap
};

}  // namespace flamewire::process
