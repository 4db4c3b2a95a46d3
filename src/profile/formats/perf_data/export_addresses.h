// The addresses of the frames of an export. perf takes names only from files, so every named frame gets an address in a
// range that no kernel uses, and a PERF_RECORD_KSYMBOL names it: no other record can name an address. A frame without a
// name that has an address in a file keeps that address, so that readers who have the file can name it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/formats/perf_data/embedded_symbols.h"
#include "profile/store/tables.h"

namespace flamewire::profile::perf_data {

struct ExportedFrame {
    std::uint64_t address = 0;
    ModuleId module = 0;  // the module whose file contains it; 0: the frame has a name
};

// Code of a module as if it were mapped at `start`, at the same address in every process.
struct ExportedArea {
    ModuleId module = 0;
    std::uint64_t start = 0, end = 0, file_offset = 0;
};

class ExportAddresses {
public:
    explicit ExportAddresses(const Store::Tables& tables);

    // Call announce() for all stacks, then lay_out() once, then the getters.
    void announce(StackId stack);
    void lay_out();
    // Innermost first.
    [[nodiscard]] std::span<const ExportedFrame> frames_of(LocationId location) const;
    [[nodiscard]] const ExportedArea& area_of(ModuleId module) const { return areas_.at(module); }
    [[nodiscard]] std::span<const ExportedArea> areas() const { return areas_; }  // by module; empty if without frames
    [[nodiscard]] const std::vector<EmbeddedFunction>& functions() const { return functions_; }
    // The address of "[truncated]", the root of stacks that do not fit a record.
    [[nodiscard]] std::uint64_t truncated() const { return functions_.front().address; }

private:
    void announce_location(LocationId location);
    ExportedFrame named(const LocationFrame& frame, const Location& location);
    [[nodiscard]] bool has_place_in_file(const Location& location, const Function& function) const;

    const Store::Tables& tables_;
    std::vector<std::uint8_t> seen_stacks_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> of_location_;  // first frame, count
    std::vector<ExportedFrame> frames_;  // before lay_out() the address of a named frame is function << 32 | place
    std::vector<ExportedArea> areas_;
    std::vector<EmbeddedFunction> functions_;
    std::vector<std::uint32_t> of_group_;  // by group of functions; 0: none yet
    std::map<std::tuple<std::uint32_t, StringId, std::uint32_t, std::uint64_t, std::uint32_t, FrameKind>, std::uint32_t>
        places_;
};

}  // namespace flamewire::profile::perf_data
