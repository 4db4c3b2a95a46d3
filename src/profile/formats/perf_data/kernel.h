// Kernel addresses of a recording: of the image, relative to _text; of modules, relative to where each was loaded; of
// BPF programs and trampolines, by the name that a record gave them. The recording may be of any machine and boot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "profile/formats/perf_data/modules.h"
#include "profile/formats/perf_data/side_records.h"
#include "profile/formats/recording_builder.h"

namespace flamewire::profile::perf_data {

class Kernel {
public:
    explicit Kernel(const Modules& modules) : modules_(modules) {}

    void map(const Mapping& mapping);
    void symbol(const KernelSymbol& symbol);
    wire::Id location(RecordingBuilder& builder, std::uint64_t address, bool return_address);

    // A kernel address was seen, but never where the kernel is.
    [[nodiscard]] bool base_missing() const { return used_ && !base_; }
    // Another number whenever something changed.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

private:
    struct Area {
        std::uint64_t end = 0;
        std::string name;
        wire::Id wire_id = 0;
    };
    static Area* find(std::map<std::uint64_t, Area>& areas, std::uint64_t address);

    const Modules& modules_;
    std::optional<std::uint64_t> base_;
    std::map<std::uint64_t, Area> loaded_, symbols_;  // by start
    wire::Id image_ = 0;                              // 0: not announced yet
    std::uint64_t generation_ = 0;
    bool used_ = false;
};

}  // namespace flamewire::profile::perf_data
