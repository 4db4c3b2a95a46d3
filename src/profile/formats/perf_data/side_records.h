// Records other than samples: mappings, names, forks and exits, kernel symbols, losses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/formats/perf_data/header.h"
#include "profile/formats/perf_data/record_order.h"

namespace flamewire::profile::perf_data {

struct Mapping {
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t start = 0, size = 0, offset = 0;
    std::uint64_t inode = 0;  // 0: unknown
    std::string_view build_id, path;
    bool kernel = false, guest = false, executable = true;
};

struct Comm {
    std::uint32_t pid = 0, tid = 0;
    std::string_view comm;
    bool exec = false;
};

struct Task {
    std::uint32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
    bool with_maps = true;  // of a fork: the child has its parent's mappings
};

struct KernelSymbol {
    std::uint64_t address = 0;
    std::uint32_t size = 0;
    bool gone = false;  // unloaded
    std::string_view name;
};

struct Loss {
    std::uint64_t count = 0;
    std::uint64_t id = 0;  // of the event, or of an event that shares its ring
};

// These return nothing if the record is too short.
std::optional<Mapping> parse_mapping(const Header& header, const Record& record);
std::optional<Comm> parse_comm(const Header& header, const Record& record);
std::optional<Task> parse_task(const Header& header, const Record& record);
std::optional<KernelSymbol> parse_kernel_symbol(const Header& header, const Record& record);
std::optional<Loss> parse_loss(const Header& header, const Record& record);

// The size of a record's own fields. The trailer with tid, time and ids (sample_id_all) follows them, if there is one.
std::size_t own_size(const Header& header, const Record& record);

}  // namespace flamewire::profile::perf_data
