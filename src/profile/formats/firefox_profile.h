// A processed profile of the Firefox Profiler as stored in its file, of any version. docs/imports.md describes what
// changed in which version. Tables are stored as columns and in any order, so they are kept unchanged until the whole
// file is read.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/formats/import.h"
#include "profile/formats/json_shape.h"

namespace flamewire::profile::firefox_format {

inline constexpr std::uint32_t newest_version = 75;
// From this version on, the address of a calling frame is the address of the call. Before, it was the return address.
inline constexpr std::uint32_t call_addresses_version = 38;
// No value, or no such index.
inline constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

using Column = std::vector<std::uint32_t>;
inline std::uint32_t at(const Column& column, std::uint32_t index) {
    return index < column.size() ? column[index] : none;
}

// Flags for the columns of a row that hold a value. Versions without a column of flags have null or -1 instead.
enum FrameFlag : std::uint8_t { is_inlined = 1, has_address = 2, has_native_symbol = 8, has_line = 16 };
enum FuncFlag : std::uint8_t { has_resource = 4, has_source = 8 };

struct Tables {
    Column stack_prefix, stack_prefix_offset, stack_frame;
    Column frame_func, frame_line, frame_inline_depth, frame_flags, frame_address, frame_library, frame_native_symbol;
    Column func_name, func_file, func_source, func_flags, func_resource;
    Column resource_library, resource_name, resource_type;
    Column native_symbol_library;
    Column source_file;  // shared by all threads, even in versions in which other tables belong to a thread
    std::vector<std::string> texts;

    [[nodiscard]] std::uint32_t prefix(std::uint32_t stack) const;
    [[nodiscard]] bool inlined(std::uint32_t frame) const;
    [[nodiscard]] std::uint32_t line(std::uint32_t frame) const {
        return flagged(frame_line, frame_flags, has_line, frame);
    }
    [[nodiscard]] std::uint32_t address(std::uint32_t frame) const {
        return flagged(frame_address, frame_flags, has_address, frame);
    }
    // An index into `libs`.
    [[nodiscard]] std::uint32_t library(std::uint32_t frame) const;
    // An index into `texts`: the library's name, for frames without an address. none: the frame is not in a library.
    [[nodiscard]] std::uint32_t library_name(std::uint32_t frame) const;
    [[nodiscard]] std::uint32_t file(std::uint32_t func, const Tables& shared) const;

private:
    static std::uint32_t flagged(const Column& column, const Column& flags, unsigned flag, std::uint32_t index) {
        return flags.empty() || (at(flags, index) & flag) != 0 ? at(column, index) : none;
    }
    [[nodiscard]] std::uint32_t resource(std::uint32_t func) const {
        return flagged(func_resource, func_flags, has_resource, func);
    }
};

struct Library {
    std::string path, name, debug_name, code_id, debug_id;
};

struct ThreadColumns {
    Tables tables;
    std::vector<Library> libraries;
    std::string name, weight_type, own_event, own_unit, own_comm;
    std::uint32_t pid = 0, tid = 0;
    Column stacks, own_returns;
    std::vector<double> times_ms, deltas_ms, weights, own_samples, own_weights;
};

struct Profile {
    std::string product;
    std::uint32_t version = 0;
    bool symbolicated = true;
    double start_ms = 0, profiling_start_ms = 0;  // profiling_start_ms is relative to start_ms
    std::vector<Library> libraries;
    std::vector<ThreadColumns> threads;
    Tables shared;
};

Result<Profile> read(ImportJob& job);

}  // namespace flamewire::profile::firefox_format
