// The processes of a recording: the files in each address space, from the recording's map, fork and exec records. Files
// are opened by path, and the vDSO is this process's own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "perf_data.h"
#include "unwind/tables/code_map.h"

namespace flamewire::perf_data {

class Processes final : public unwind::ModuleFiles {
public:
    // `elsewhere`: file name -> its path, for files that are not at the recorded path.
    explicit Processes(std::map<std::string, std::string, std::less<>> elsewhere = {});

    void apply(const Mapping& mapping);
    void apply(const Comm& comm);
    void apply(const Task& task);
    void apply(const Sample&) {}

    // The address space of a process, which is empty for an unknown one.
    unwind::CodeMap& space_of(std::uint32_t pid);
    [[nodiscard]] const std::string& comm_of(std::uint32_t tid) const;

    // The place of an address, as the recorded name and file offset.
    struct Place {
        std::string_view path;
        std::uint64_t file_offset = 0;
    };
    std::optional<Place> place_of(std::uint32_t pid, std::uint64_t address);

    Result<elf::ByteSource> open(unwind::ModuleId module) override;

private:
    struct Piece {
        unwind::CodePiece code;
        std::uint64_t mapped_at = 0, page_offset = 0;
        std::string_view path;  // in the recording
    };
    class Space final : public unwind::CodeMap {
    public:
        std::optional<unwind::CodePiece> find(std::uint64_t address) override;
        [[nodiscard]] const Piece* piece_at(std::uint64_t address) const;
        // Like mmap: replaces existing mappings.
        void insert(const Piece& piece);
        void erase(std::uint64_t start, std::uint64_t end);

    private:
        std::vector<Piece> pieces_;  // sorted, disjoint
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
