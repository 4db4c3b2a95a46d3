// The processes of a recording: which file lies where in each address space, by the recording's map, fork and exec
// records; files are opened by path, the vDSO is this process's own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "perf_data.h"
#include "unwind/code_map.h"

namespace flamewire::perf_data {

class Processes final : public unwind::ModuleFiles {
public:
    // `elsewhere`: where a file is that the recording names differently.
    explicit Processes(std::map<std::string, std::string, std::less<>> elsewhere = {});

    void apply(const Mapping& mapping);
    void apply(const Comm& comm);
    void apply(const Task& task);
    void apply(const Sample&) {}

    // The address space of a process; empty for one that is not known.
    unwind::CodeMap& space_of(std::uint32_t pid);
    [[nodiscard]] const std::string& comm_of(std::uint32_t tid) const;
    [[nodiscard]] const std::string& path_of(unwind::ModuleId module) const;

    Result<elf::ByteSource> open(unwind::ModuleId module) override;

private:
    class Space final : public unwind::CodeMap {
    public:
        std::optional<unwind::CodePiece> find(std::uint64_t address) override;
        // As mmap does: what lies there goes.
        void insert(const unwind::CodePiece& piece);

    private:
        std::vector<unwind::CodePiece> pieces_;  // sorted, disjoint
    };
    struct Module {
        std::string path, build_id;
        std::vector<elf::Segment> segments;
    };

    unwind::ModuleId module_of(const Mapping& mapping);

    std::map<std::string, std::string, std::less<>> elsewhere_;
    std::vector<Module> modules_;  // id - 1
    std::map<std::string, unwind::ModuleId> ids_;
    std::unordered_map<std::uint32_t, Space> spaces_;
    std::unordered_map<std::uint32_t, std::string> comms_;
};

}  // namespace flamewire::perf_data
