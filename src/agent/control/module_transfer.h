// Module files for a server that lacks them: which bytes name code, and those bytes, a part at a time. Only of modules
// that the recording has seen: whoever asks names an identity, never a path to open.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "agent/process/process_table.h"
#include "base/fd.h"
#include "base/result.h"
#include "elf/elf_file.h"
#include "wire/control.h"
#include "wire/module_chunk.h"

namespace flamewire::agent {

struct FetchRequest {
    std::string id;         // of the command
    FileIdentity identity;  // as the batch described the module
    std::uint64_t offset = 0;
    std::size_t bytes = wire::max_module_chunk;
};
// invalid with the sentence of the refusal.
Result<FetchRequest> parse_fetch(const wire::Command& command);
// {"id","ok":false,"error","code"}: too_large, switched_off, changed, busy, or gone.
std::string encode_fetch_refusal(const std::string& id, const Error& error);

// Symbol tables, their strings, debug info, notes, call stubs, headers: what a server needs to name code, as ascending
// ranges of the file. The whole file when little would be left out. invalid: no ELF file.
Result<std::vector<wire::FileRange>> symbol_ranges(const elf::ByteSource& source, std::uint64_t file_size);

class ModuleTransfers {
public:
    using Open = std::function<Result<UniqueFd>(const FileIdentity&)>;

    // Nothing of a stream that is longer than `cap_bytes`; 0: nothing at all. `open` finds the file of a module that was
    // seen; called once for a transfer.
    ModuleTransfers(std::uint64_t cap_bytes, Open open) : cap_bytes_(cap_bytes), open_(std::move(open)) {}

    // unsupported: switched off. too_large: over the cap. closed: the file is not the same any more. not_found: no such
    // module, or its file is gone.
    Result<wire::ModuleChunk> read(const FetchRequest& request);

private:
    struct Transfer {
        FileIdentity identity;
        UniqueFd file;
        std::uint64_t device = 0, inode = 0, size = 0;
        std::int64_t mtime_ns = 0;
        std::vector<wire::FileRange> ranges;
        std::uint64_t total = 0;
    };
    Result<Transfer*> transfer_of(const FileIdentity& identity);
    static Result<bool> check_unchanged(const Transfer& transfer);
    static Result<std::string> read_stream(const Transfer& transfer, std::uint64_t offset, std::size_t bytes);

    std::uint64_t cap_bytes_;
    Open open_;
    std::list<Transfer> transfers_;  // used last in front
};

}  // namespace flamewire::agent
