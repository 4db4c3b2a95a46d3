// Converts a sample to its stack: the kernel part of the call chain, then the user part. The user part is the rest of
// the chain, or comes from the CPU's branch records, or from unwinding with registers and the copied stack.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/code_address.h"
#include "profile/formats/perf_data/header.h"
#include "profile/formats/perf_data/kernel.h"
#include "profile/formats/perf_data/modules.h"
#include "profile/formats/perf_data/perf_maps.h"
#include "profile/formats/perf_data/processes.h"
#include "profile/formats/perf_data/sample.h"
#include "profile/formats/recording_builder.h"
#include "unwind/walk/branch_stack.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::profile::perf_data {

class Stacks {
public:
    Stacks(const Header& header, Modules& modules, Kernel& kernel, PerfMaps& perf_maps);

    // `builder` must be the same in all calls.
    wire::Id stack_of(RecordingBuilder& builder, const Sample& sample, Process& process);

    // The cookie of the record with the sample's user call chain; nothing if the sample needs no such record.
    [[nodiscard]] std::optional<std::uint64_t> deferred_cookie(const Sample& sample) const;

    struct Counts {
        std::uint64_t guest = 0;       // frames of virtual machines, which get no names
        std::uint64_t unwound = 0;     // stacks
        std::uint64_t incomplete = 0;  // of these: not unwound to the root
        std::uint64_t foreign = 0;     // stacks of architectures that Flamewire does not unwind
    };
    [[nodiscard]] const Counts& counts() const { return counts_; }

private:
    enum class Kind : std::uint8_t { user, kernel, guest };
    struct Frame {
        CodeAddress address;
        Kind kind = Kind::user;
    };
    enum class End : std::uint8_t { open, truncated, incomplete };

    void split_chain(const Sample& sample);
    [[nodiscard]] std::uint64_t hash_of_chain(const Sample& sample, std::uint64_t place) const;
    static Kind kind_of(perf::CpuMode mode);
    [[nodiscard]] perf::CpuMode mode_of(const Sample& sample) const;
    void unwind_user_part(const Sample& sample, Process& process);
    void take_branches(const Sample& sample);
    void drop_user_part();
    wire::Id fold(RecordingBuilder& builder, Process& process);
    wire::Id location_of(RecordingBuilder& builder, const Frame& frame, Process& process);
    wire::Id embedded_location(RecordingBuilder& builder, std::uint64_t address);

    const Header& header_;
    Modules& modules_;
    Kernel& kernel_;
    PerfMaps& perf_maps_;
    std::optional<unwind::Arch> machine_;
    unwind::Unwinder unwinder_;
    Counts counts_;

    // For the current sample.
    std::vector<Frame> frames_;
    End end_ = End::open;
    std::vector<unwind::Frame> walked_;
    std::vector<unwind::Branch> branches_;
    std::vector<wire::Id> locations_;

    // A hash table of stacks. The key covers the frames and the address space in which they are looked up.
    struct Known {
        std::uint64_t hash = 0;
        wire::Id stack = 0;
    };
    Known& known(std::uint64_t hash);
    std::vector<Known> known_;
    std::size_t known_count_ = 0;
};

}  // namespace flamewire::profile::perf_data
