// Threads, processes and their address spaces over time, from map, comm and fork records in time order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "perf/record.h"
#include "process/shared_space.h"
#include "profile/formats/perf_data/modules.h"
#include "unwind/tables/code_map.h"

namespace flamewire::profile::perf_data {

struct Process {
    Process(std::uint32_t pid_in, process::SharedSpace space_in) : pid(pid_in), space(std::move(space_in)) {}

    // The executable mapping at `address`. nullptr: none, and the generation changes when something is mapped there.
    const process::Mapping* find(std::uint64_t address) {
        const process::Mapping* mapping = space.find(address);
        if (mapping == nullptr) space.note_unknown_answer();
        return mapping;
    }

    std::uint32_t pid = 0, parent_pid = 0;
    std::string comm, exe;  // exe: the first executable file that was mapped
    std::uint64_t start_ns = 0;
    std::uint32_t executions = 0;
    process::SharedSpace space;
    bool has_jit = false;  // code without a file is or was mapped there
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
    process::SharedSpace new_space();
    void forget_space(const Process& process);

    Modules& modules_;
    std::size_t mappings_ = 0;  // in all spaces
    std::unordered_map<std::uint32_t, Process> processes_;
    std::unordered_map<std::uint32_t, Thread> threads_;  // by tid
    std::uint64_t generations_ = 0;
};

// The code of one process, for unwinding.
class ProcessCode final : public unwind::CodeMap {
public:
    ProcessCode(Process& process, Modules& modules) : process_(process), modules_(modules) {}
    std::optional<unwind::CodePiece> find(std::uint64_t address) override;

private:
    Process& process_;
    Modules& modules_;
};

}  // namespace flamewire::profile::perf_data
