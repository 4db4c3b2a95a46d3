// The files that processes of a recording had mapped, and their copies on this machine. The segments of such a file
// convert file offsets to addresses, and unwinding reads its tables.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "perf/record.h"
#include "process/address_space.h"
#include "profile/formats/import.h"
#include "profile/formats/perf_data/header.h"
#include "symbol/files/code_file.h"
#include "unwind/tables/code_map.h"

namespace flamewire::profile::perf_data {

struct Module {
    wire::ModuleKind kind = wire::ModuleKind::file;
    std::string path, build_id;
    std::uint64_t inode = 0;
    unwind::ModuleId id = 0;  // 1-based
    wire::Id wire_id = 0;     // 0: not announced yet
    bool searched = false;
    std::optional<symbol::CodeFile> file;  // empty: not on this machine
};

class Modules final : public unwind::ModuleFiles {
public:
    // `virtual_addresses`: the file offsets of mappings are ELF virtual addresses, as in files that Flamewire exported.
    Modules(ImportJob& job, const Machine& machine, bool virtual_addresses = false)
        : job_(job), machine_(machine), virtual_addresses_(virtual_addresses) {}

    Module& of_mapping(const perf::MmapRecord& map);
    [[nodiscard]] Module& at(unwind::ModuleId id) { return modules_[id - 1]; }

    // The ELF virtual address of `address`, where `mapping` maps the module. Without the file, returns the most likely
    // one.
    std::uint64_t virtual_address(Module& module, const process::Mapping& mapping, std::uint64_t address);
    // Looks for the file. Later calls do nothing.
    void find_file(Module& module);
    Result<elf::ByteSource> open(unwind::ModuleId id) override;

    // Files that were looked for and are not on this machine.
    [[nodiscard]] std::vector<std::string> missing() const;

    // The build-id that perf noted after the recording. Empty: there is none.
    [[nodiscard]] std::string_view known_build_id(std::string_view path, bool kernel) const;

private:
    ImportJob& job_;
    const Machine& machine_;
    bool virtual_addresses_;
    std::deque<Module> modules_;  // a deque, so references stay valid
    std::map<std::tuple<std::string, std::string, std::uint64_t>, unwind::ModuleId, std::less<>> by_identity_;
    mutable std::map<std::string, std::string, std::less<>> build_ids_;  // of machine_, by path
    mutable std::size_t build_ids_seen_ = 0;
};

}  // namespace flamewire::profile::perf_data
