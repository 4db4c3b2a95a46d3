// Threads, processes and their address spaces over time, from map, comm and fork records in time order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "perf/record.h"
#include "profile/formats/perf_data/modules.h"
#include "unwind/tables/code_map.h"

namespace flamewire::profile::perf_data {

// The executable memory of one address space. Forked processes share it until one of them changes it.
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
    // A separate space with the same content. It is empty if there are too many areas already.
    [[nodiscard]] std::shared_ptr<AddressSpace> copy(std::uint64_t generation) const;

    // Replaces what was mapped there before. `module` 0: nothing executable is there now.
    void map(std::uint64_t start, std::uint64_t size, std::uint64_t offset, unwind::ModuleId module,
             std::uint64_t generation);
    [[nodiscard]] std::optional<Place> place_of(std::uint64_t address) const;
    std::optional<unwind::CodePiece> find(std::uint64_t address) override;
    // Changes with every change of the space. Two spaces with different content never have the same number.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }
    [[nodiscard]] bool empty() const { return areas_.empty(); }
    // Returns whether code without a file is or was mapped here.
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
    std::string comm, exe;  // exe: the first executable file that was mapped
    std::uint64_t start_ns = 0;
    std::uint32_t executions = 0;
    std::shared_ptr<AddressSpace> space;
    wire::Id wire_id = 0;  // 0: not announced yet
};

struct Thread {
    std::uint32_t pid = 0, executions = 0;  // `executions` of its process when the thread was created
    std::string comm;
    wire::Id wire_id = 0;  // 0: not announced yet, or announced with values that have changed since
};

class Processes {
public:
    explicit Processes(Modules& modules) : modules_(modules) {}

    void map(const perf::MmapRecord& map);
    // Handles a COMM record. After an exec the process gets a new id and an empty space.
    void name(const perf::CommRecord& comm);
    void fork(const perf::TaskRecord& task);

    // Created with default values if no record mentioned it.
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
