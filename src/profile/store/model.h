// The basic types of stored profiles and of queries. A profile is weighted stacks over time.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace flamewire::profile {

// Dense indexes into a Store's tables. Unlike ids on the wire they stay valid as long as the store. 0 is reserved: "",
// no module, root.
using StringId = std::uint32_t;
using ModuleId = std::uint32_t;
using LocationId = std::uint32_t;
using StackId = std::uint32_t;  // node of the address trie
using ThreadId = std::uint32_t;
using ProcessId = std::uint32_t;
using EventId = std::uint32_t;
using FunctionId = std::uint32_t;  // interned (name, module, kind); see Function
using NodeId = std::uint32_t;      // node of the function trie

// The time of rows from files without times. Not 0, because 0 means "not known".
inline constexpr std::uint64_t import_moment_ns = 1'000'000'000;

// Maximum number of frames in a stack. Agents send far fewer, but imported files may contain any number.
inline constexpr std::uint32_t max_stack_depth = 65'535;

enum class FrameKind : std::uint8_t { user, kernel, jit, inlined, unknown };

// What a frame displays. An unresolved address has the name "[module+0xoffset]" and the kind unknown.
struct Function {
    StringId name = 0;
    StringId module = 0;  // file name of the module, without directories
    FrameKind kind = FrameKind::unknown;
    StringId file = 0;  // of its declaration or of its first line seen; 0 if unknown
    std::uint32_t line = 0;
};

// Every view takes a filter. Times are CLOCK_MONOTONIC ns of the target, and the end is exclusive. A row belongs to a
// range if its bucket starts in it.
struct Filter {
    std::optional<EventId> event = std::nullopt;
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = std::numeric_limits<std::uint64_t>::max();
    // '= {}' lets a caller name only the members that it sets. NOLINTBEGIN(readability-redundant-member-init)
    std::vector<std::uint32_t> pids = {};  // empty: all
    std::vector<std::uint32_t> tids = {};  // empty: all
    // Processes by container, pod or cgroup, named as people name them (base/cgroup_path.h). A process must match one
    // entry of each list; an empty list matches all.
    std::vector<std::string> containers = {}, pods = {}, cgroups = {};
    // NOLINTEND(readability-redundant-member-init)
    [[nodiscard]] bool by_place() const { return !containers.empty() || !pods.empty() || !cgroups.empty(); }
};

struct Weight {
    std::uint64_t samples = 0;
    std::uint64_t weight = 0;  // in the event's unit
    Weight& operator+=(const Weight& other) {
        samples += other.samples;
        weight += other.weight;
        return *this;
    }
    bool operator==(const Weight&) const = default;
};

}  // namespace flamewire::profile
