// Names of JIT code: the perf maps of a recording's processes, as far as they are on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "profile/formats/import.h"
#include "profile/formats/perf_data/header.h"
#include "profile/formats/perf_data/processes.h"
#include "symbol/files/perf_map.h"

namespace flamewire::profile::perf_data {

class PerfMaps {
public:
    PerfMaps(ImportJob& job, const Machine& machine) : job_(job), machine_(machine) {}

    // The map of the process, else of the process that it was forked from, whose code it shares. nullptr: there is
    // none.
    const symbol::PerfMap* of(const Process& process);

    struct Entry {
        std::string path;  // empty: no file
        std::unique_ptr<symbol::PerfMap> map;
        bool missing = false;  // no map, and the process ran code that is not in a file
        std::string comm;      // of the process
    };
    [[nodiscard]] const std::map<std::uint32_t, Entry>& entries() const { return entries_; }

private:
    Entry& entry(std::uint32_t pid);

    ImportJob& job_;
    const Machine& machine_;
    std::map<std::uint32_t, Entry> entries_;  // by pid
    std::size_t bytes_ = 0;                   // of all map texts
};

}  // namespace flamewire::profile::perf_data
