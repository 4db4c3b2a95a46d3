// Module files by identity: build-id, or else (device, inode, size, mtime); never by path alone. Stores each file's
// executable segments, to convert file offsets to ELF addresses. Reads foreign files with pread through /proc, a few
// KiB of each, and only once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/process/process_table.h"
#include "base/fd.h"
#include "base/system.h"
#include "elf/elf_file.h"
#include "process/address_space.h"
#include "unwind/tables/code_map.h"

namespace flamewire::agent {

// One mapping of a file, from a record or /proc/PID/maps.
struct MappedFile {
    std::uint32_t pid = 0;
    std::uint32_t parent_pid = 0;  // its /proc entry may still lead to the file after pid has exited
    std::uint64_t start = 0, end = 0;
    std::string path;  // without " (deleted)"
    bool deleted = false;
    std::string build_id;                 // from the record; empty: unknown
    std::uint64_t device = 0, inode = 0;  // makedev form; 0: unknown
};

class ModuleCache {
public:
    // `keep_files`: keeps files open, so that unwind tables can be read later, even after a rename or deletion.
    ModuleCache(std::string proc_root, std::uint64_t page_size, bool keep_files = false);

    // By the mapping's name; 0 if it is anonymous memory.
    ModuleHandle of_mapping(const MappedFile& mapped);
    // The module for the mapping; 0 if it is anonymous memory after all (a memfd or a deleted file that is not an ELF
    // file).
    ModuleHandle of_file(const MappedFile& mapped);
    ModuleHandle of_vdso(std::uint32_t pid, std::uint64_t start, std::uint64_t end);
    // A new module for code that a process generated; each call returns another one.
    ModuleHandle jit_code(const ProcessInfo& process);
    // The only kernel module; created by the first call.
    ModuleHandle kernel(const std::string& build_id);

    // ELF virtual address of a file offset. If a module's file could not be read, the file offset permanently serves as
    // the address.
    std::uint64_t address_of(ModuleHandle module, std::uint64_t file_offset);

    // The part of `mapping` around `address` in which the runtime and ELF addresses have a constant difference.
    unwind::CodePiece piece_at(const process::Mapping& mapping, std::uint64_t address);
    // Reads the module's file or the vDSO; each read fails once the file was changed in place. The source must not
    // outlive the cache. not_found: there is no file, or it was not kept open.
    Result<elf::ByteSource> open_file(ModuleHandle module);

    // Another descriptor of a kept file; see ProcessTable::duplicate_file.
    Result<UniqueFd> duplicate_file(const FileIdentity& identity);

    // Empty for an unknown handle.
    [[nodiscard]] const ModuleInfo& info(ModuleHandle module) const;
    // The image of a vDSO module; empty for other modules.
    [[nodiscard]] Bytes vdso_image(ModuleHandle module) const;

    std::vector<wire::Notice> take_notices();

private:
    struct FileKey {
        std::uint64_t device = 0, inode = 0, size = 0;
        std::int64_t mtime_ns = 0;
        bool operator==(const FileKey&) const = default;
    };
    struct State {
        ModuleInfo info;
        std::vector<elf::Segment> executable, others;  // its PT_LOADs
        bool readable = false;                         // the segments are known
        bool offsets_given = false;                    // an address was returned as a file offset, so this must stay
        std::string image;                             // of a vDSO
        UniqueFd file;                                 // with keep_files
        FileKey file_key;                              // identity of `file` when its headers were read
        bool changed = false;                          // the file was changed in place since
    };
    struct FileKeyHash {
        std::size_t operator()(const FileKey& key) const;
    };
    struct Candidate;
    static FileKey key_of(const FileStatus& facts);

    ModuleHandle add(State state);
    // Finds the file of the mapping through the paths that may still lead to it, best first.
    Result<Candidate> find_candidate(const MappedFile& mapped) const;
    // `by_kernel`: the path is the kernel's own link to the mapped file.
    Result<Candidate> inspect(const std::string& path, bool by_kernel, const MappedFile& mapped) const;
    ModuleHandle of_candidate(const MappedFile& mapped, Candidate candidate);
    ModuleHandle of_unreadable(const MappedFile& mapped, const Error& error);
    void give_notice(const MappedFile& mapped, const Error& error);
    Result<std::string> read_kept(ModuleHandle module, std::uint64_t offset, std::size_t size);
    bool unchanged(State& state);

    std::string proc_root_;
    std::uint64_t page_size_;
    bool keep_files_;
    std::size_t kept_files_ = 0;
    std::vector<State> modules_;  // handle - 1
    std::unordered_map<std::string, ModuleHandle> by_build_id_;
    std::unordered_map<FileKey, ModuleHandle, FileKeyHash> by_file_;
    std::unordered_map<std::string, ModuleHandle> unreadable_by_path_;
    ModuleHandle kernel_ = 0;
    std::uint64_t jit_modules_ = 0;
    std::string own_vdso_;
    bool own_vdso_read_ = false;
    std::vector<wire::Notice> notices_;
    std::size_t notices_given_ = 0;
};

}  // namespace flamewire::agent
