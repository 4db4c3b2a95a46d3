// Where the frames of an export stand. perf finds names of its own only in files, so every frame that has a name gets an
// address of its own in a space that no kernel uses, and a PERF_RECORD_KSYMBOL says what it is called: the one record that
// gives an address a name. What has no name but a place in a file is shown at that place, for whoever has the file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/formats/perf_data/told_names.h"
#include "profile/store/tables.h"

namespace flamewire::profile::perf_data {

struct ExportedFrame {
    std::uint64_t address = 0;
    ModuleId module = 0;  // whose file it is in; 0: it has a name
};

// Code of a module as if it were mapped there, at the same address in every process.
struct ExportedArea {
    ModuleId module = 0;
    std::uint64_t start = 0, end = 0, file_offset = 0;
};

class ExportAddresses {
public:
    explicit ExportAddresses(const Store::Tables& tables);

    // Announce all stacks, then call lay_out() once, then ask.
    void announce(StackId stack);
    void lay_out();
    // Innermost first.
    [[nodiscard]] std::span<const ExportedFrame> frames_of(LocationId location) const;
    [[nodiscard]] const ExportedArea& area_of(ModuleId module) const { return areas_.at(module); }
    [[nodiscard]] std::span<const ExportedArea> areas() const { return areas_; }  // by module; those without are empty
    [[nodiscard]] const std::vector<ToldFunction>& functions() const { return functions_; }
    // "[truncated]", the root of stacks that a record cannot hold.
    [[nodiscard]] std::uint64_t truncated() const { return functions_.front().address; }

private:
    void announce_location(LocationId location);
    ExportedFrame named(const LocationFrame& frame, const Location& location);
    [[nodiscard]] bool has_place_in_file(const Location& location, const Function& function) const;

    const Store::Tables& tables_;
    std::vector<std::uint8_t> seen_stacks_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> of_location_;  // first frame, count
    std::vector<ExportedFrame> frames_;  // before lay_out() a named one's address is function << 32 | place
    std::vector<ExportedArea> areas_;
    std::vector<ToldFunction> functions_;
    std::vector<std::uint32_t> of_group_;  // by group of functions; 0: not yet
    std::map<std::tuple<std::uint32_t, StringId, std::uint32_t, std::uint64_t, std::uint32_t, FrameKind>, std::uint32_t>
        places_;
};

}  // namespace flamewire::profile::perf_data
