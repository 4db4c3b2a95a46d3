// Who ran when, and what was mapped where: threads, processes and their address spaces as map, comm, fork and exit
// records tell them, in the order of time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "profile/formats/perf_data/modules.h"
#include "profile/formats/perf_data/side_records.h"
#include "unwind/tables/code_map.h"

namespace flamewire::profile::perf_data {

// Executable memory of one address space. Processes that were forked share it until one of them changes it.
class AddressSpace final : public unwind::CodeMap {
public:
    struct Area {
        std::uint64_t end = 0, offset = 0;
        unwind::ModuleId module = 0;
    };
    struct Place {
        std::uint64_t start = 0;
        Area area;
    };

    // `alive` counts the areas of all spaces.
    AddressSpace(Modules& modules, std::size_t& alive, std::uint64_t generation)
        : modules_(modules), alive_(alive), generation_(generation) {}
    ~AddressSpace() { alive_ -= areas_.size(); }
    AddressSpace(const AddressSpace&) = delete;
    AddressSpace& operator=(const AddressSpace&) = delete;
    // A space of its own with the same content; an empty one when there are too many areas already.
    [[nodiscard]] std::shared_ptr<AddressSpace> copy(std::uint64_t generation) const;

    // What was there before is gone. `module` 0: nothing executable is there now.
    void map(std::uint64_t start, std::uint64_t size, std::uint64_t offset, unwind::ModuleId module,
             std::uint64_t generation);
    [[nodiscard]] std::optional<Place> place_of(std::uint64_t address) const;
    std::optional<unwind::CodePiece> find(std::uint64_t address) override;
    // Another number whenever something changed; no two spaces that differ have the same.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }
    [[nodiscard]] bool empty() const { return areas_.empty(); }
    // Code that is in no file is or was mapped here.
    [[nodiscard]] bool has_jit() const { return has_jit_; }

private:
    void add(std::uint64_t start, const Area& area);

    Modules& modules_;
    std::size_t& alive_;
    std::map<std::uint64_t, Area> areas_;  // by start
    std::uint64_t generation_;
    bool has_jit_ = false;
};

struct Process {
    std::uint32_t pid = 0, parent_pid = 0;
    std::string comm, exe;  // exe: the first file that was mapped
    std::uint64_t start_ns = 0;
    std::uint32_t executions = 0;
    std::shared_ptr<AddressSpace> space;
    wire::Id wire_id = 0;  // 0: not announced yet
};

struct Thread {
    std::uint32_t pid = 0, executions = 0;  // of its process, when it was told of
    std::string comm;
    wire::Id wire_id = 0;  // 0: not announced yet, or what is announced is not so any more
};

class Processes {
public:
    explicit Processes(Modules& modules) : modules_(modules) {}

    void map(const Mapping& mapping);
    // An exec makes another process of it.
    void name(const Comm& comm, std::uint64_t time_ns);
    void fork(const Task& task, std::uint64_t time_ns);

    // Made up when no record told of them.
    Process& process(std::uint32_t pid);
    Thread& thread(std::uint32_t pid, std::uint32_t tid);

private:
    std::shared_ptr<AddressSpace> new_space() {
        return std::make_shared<AddressSpace>(modules_, areas_alive_, ++generation_);
    }

    Modules& modules_;
    std::size_t areas_alive_ = 0;
    std::unordered_map<std::uint32_t, Process> processes_;
    std::unordered_map<std::uint32_t, Thread> threads_;  // by tid
    std::uint64_t generation_ = 0;
};

}  // namespace flamewire::profile::perf_data
