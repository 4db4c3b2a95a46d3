// Kernel addresses of a recording: in the image, relative to _text; in modules, relative to their load address; BPF
// programs and trampolines, by the name in their record. The recording can be from any machine and boot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/code_address.h"
#include "perf/record.h"
#include "process/kernel_symbols.h"
#include "profile/formats/perf_data/modules.h"
#include "profile/formats/recording_builder.h"

namespace flamewire::profile::perf_data {

class Kernel {
public:
    explicit Kernel(const Modules& modules) : modules_(modules) {}

    void map(const perf::MmapRecord& map);
    void symbol(const perf::KsymbolRecord& symbol);
    wire::Id location(RecordingBuilder& builder, CodeAddress address);

    // Names the addresses seen in the image if the recorded kernel is the one that runs here.
    void name(RecordingBuilder& builder) const;

    // Returns whether kernel addresses occurred, but no record with the kernel's address.
    [[nodiscard]] bool base_missing() const { return used_ && !base_; }
    // Changes whenever a mapping or a symbol changes.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

private:
    struct Area {
        std::uint64_t end = 0;
        std::string name;
        wire::Id wire_id = 0;
    };
    Area* find_loaded(std::uint64_t address);

    const Modules& modules_;
    std::optional<std::uint64_t> base_;
    std::map<std::uint64_t, Area> loaded_;  // modules, by start
    // The import's memory is the limit.
    process::KernelSymbols symbols_{std::numeric_limits<std::size_t>::max()};
    wire::Id image_ = 0;  // 0: not announced yet
    std::uint64_t generation_ = 0;
    std::set<std::uint64_t> seen_;  // lookup addresses in the image, relative to its base
    bool used_ = false;
};

}  // namespace flamewire::profile::perf_data
