// The stacks of a profile.proto: its mappings, functions and locations as frames of the recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profile/formats/import.h"
#include "profile/formats/import_names.h"
#include "profile/formats/pprof_messages.h"
#include "profile/formats/recording_builder.h"
#include "symbol/files/code_file.h"

namespace flamewire::profile {

// Refers to the job and the builder, and to texts of the file. protozero's exceptions pass through.
class PprofFrames {
public:
    PprofFrames(ImportJob& job, RecordingBuilder& builder) : job_(job), builder_(builder) {}

    void add(const pprof_file::Mapping& mapping);
    void add(const pprof_file::Function& function) { functions_[function.id] = function; }
    // Read with the first stack, because mappings and functions can follow it.
    void add_location(std::string_view message) { location_messages_.push_back(message); }

    // The stack of locations by id, innermost first.
    wire::Id stack(const std::vector<std::uint64_t>& ids);
    // Paths of modules whose file is not on this machine.
    [[nodiscard]] const std::vector<std::string_view>& missing() const { return missing_; }

private:
    // The parts of a mapping that addresses and names need.
    struct Range {
        std::uint64_t start = 0, offset = 0;
        wire::Id module = 0;
        ImportedModule name;
        std::string_view build_id{};             // hexadecimal digits
        const symbol::CodeFile* code = nullptr;  // set by find_file(); nullptr: not on this machine
        bool searched = false;

        // pprof does not adjust addresses of such mappings, and neither does Flamewire: they are addresses of the file.
        [[nodiscard]] bool adjusted() const { return start == 0 && offset == 0; }
    };
    // The location ids of a profile.proto location in the recording, innermost first. A bare address has two: one as the
    // running frame and one as a caller.
    struct Place {
        std::vector<wire::Id> frames;
        wire::Id caller = 0;
        bool kernel = false;
    };

    void place(const pprof_file::Location& location);
    void named(Place& place, const Range& range, const pprof_file::Line& line, bool inlined);
    void find_file(Range& range);
    static std::uint64_t file_address(const Range& range, std::uint64_t address);
    void addressed(Place& place, const Range& range, std::uint64_t address);
    const Place& place_of(std::uint64_t id);

    ImportJob& job_;
    RecordingBuilder& builder_;
    std::vector<std::string_view> location_messages_;
    std::unordered_map<std::uint64_t, Range> mappings_;
    std::unordered_map<wire::Id, std::optional<symbol::CodeFile>> code_;  // by module; references stay valid
    std::vector<std::string_view> missing_;
    std::unordered_map<std::uint64_t, pprof_file::Function> functions_;
    std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace flamewire::profile
