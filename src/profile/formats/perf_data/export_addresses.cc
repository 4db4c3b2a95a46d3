#include "profile/formats/perf_data/export_addresses.h"

#include <algorithm>
#include <limits>

namespace flamewire::profile::perf_data {
namespace {

// The lower part of the kernel's half of the address space: no Linux architecture maps anything there, and perf does
// not confuse it with mappings of the machine that it runs on.
constexpr std::uint64_t names_start = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 32);
// Distance between the areas of two files, greater than the size of any file.
constexpr std::uint64_t file_stride = std::uint64_t{1} << 36;
constexpr std::uint64_t most_modules = (std::uint64_t{1} << 62) / file_stride;
constexpr std::uint64_t page_size = 4096;

}  // namespace

ExportAddresses::ExportAddresses(const Store::Tables& tables)
    : tables_(tables),
      seen_stacks_(tables.stacks.size()),
      of_location_(tables.locations.size()),
      areas_(tables.modules.size()),
      of_group_(tables.functions.size()) {
    functions_.push_back({0, "[truncated]", "", {{}}});
}

void ExportAddresses::announce(StackId stack) {
    for (; stack != 0 && seen_stacks_[stack] == 0; stack = tables_.stacks.parent(stack)) {
        seen_stacks_[stack] = 1;
        announce_location(tables_.stacks.label(stack));
    }
}

// Returns whether the frame is an unnamed address in a file that can exist on other machines.
bool ExportAddresses::has_place_in_file(const Location& location, const Function& function) const {
    return function.kind == FrameKind::unknown && location.name == 0 && location.module != 0 &&
           location.module < most_modules && location.address < file_stride - page_size &&
           tables_.modules[location.module].identity.kind == symbol::ModuleKind::file &&
           (location.flags & wire::location_flag::kernel_mode) == 0;
}

void ExportAddresses::announce_location(LocationId id) {
    auto& [first, count] = of_location_[id];
    if (count != 0) return;
    const Location& location = tables_.locations[id];
    const std::span<const LocationFrame> frames = tables_.frames_of(id);
    first = narrow32(frames_.size());
    count = narrow32(frames.size());
    for (const LocationFrame& frame : frames) {
        if (!has_place_in_file(location, tables_.functions[frame.function])) {
            frames_.push_back(named(frame, location));
            continue;
        }
        ExportedArea& area = areas_[location.module];
        const std::uint64_t base = (location.module + 1) * file_stride, page = location.address / page_size * page_size;
        if (area.module == 0) area = {location.module, base + page, base + page + page_size, page};
        area.start = std::min(area.start, base + page);
        area.end = std::max(area.end, base + page + page_size);
        area.file_offset = area.start - base;
        frames_.push_back({base + location.address, location.module});
    }
}

ExportedFrame ExportAddresses::named(const LocationFrame& frame, const Location& location) {
    const Function& function = tables_.functions[frame.function];
    std::uint32_t& known = of_group_[tables_.functions.group(frame.function)];
    if (known == 0) {
        known = narrow32(functions_.size());
        functions_.push_back(
            {0, std::string(tables_.strings[function.name]), std::string(tables_.strings[function.module]), {}});
    }
    EmbeddedPlace place{std::string(tables_.strings[frame.file]), frame.line, 0, 0, function.kind};
    if (function.kind == FrameKind::unknown) {
        place.module_address = location.address;
        place.flags = location.flags;
    }
    std::vector<EmbeddedPlace>& places = functions_[known].places;
    const auto [entry, added] = places_.try_emplace(
        {known, frame.file, place.line, place.module_address, place.flags, place.kind}, narrow32(places.size()));
    if (added) places.push_back(std::move(place));
    return {std::uint64_t{known} << 32 | entry->second, 0};
}

void ExportAddresses::lay_out() {
    places_.clear();
    std::uint64_t next = names_start;
    for (EmbeddedFunction& function : functions_) {
        function.address = next;
        next += function.places.size();
    }
    for (ExportedFrame& frame : frames_)
        if (frame.module == 0) frame.address = functions_[frame.address >> 32].address + (frame.address & 0xffff'ffff);
}

std::span<const ExportedFrame> ExportAddresses::frames_of(LocationId location) const {
    const auto [first, count] = of_location_[location];
    return std::span(frames_).subspan(first, count);
}

}  // namespace flamewire::profile::perf_data
