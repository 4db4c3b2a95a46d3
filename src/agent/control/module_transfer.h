// Module files for a server that lacks them: selects the bytes that name code, and sends them in parts. Only modules
// that the recording has seen are sent: a request contains a file identity, never a path to open.
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
// invalid: the error message is the text of the refusal.
Result<FetchRequest> parse_fetch(const wire::Command& command);
// {"id","ok":false,"error","code"}: too_large, switched_off, changed, busy, or gone.
std::string encode_fetch_refusal(const std::string& id, const Error& error);

// Returns what a server needs to name code, as ascending ranges of the file: symbol tables, their strings, debug info,
// notes, call stubs, headers. Returns the whole file if little would be left out. invalid: not an ELF file.
Result<std::vector<wire::FileRange>> symbol_ranges(const elf::ByteSource& source, std::uint64_t file_size);

class ModuleTransfers {
public:
    using Open = std::function<Result<UniqueFd>(const FileIdentity&)>;

    // Does not send streams longer than `cap_bytes`; 0: sends nothing. `open` opens the file of a module that was seen;
    // it is called once per transfer.
    ModuleTransfers(std::uint64_t cap_bytes, Open open) : cap_bytes_(cap_bytes), open_(std::move(open)) {}

    // unsupported: disabled. too_large: over the cap. closed: the file has changed. not_found: no such module, or its
    // file no longer exists.
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
    std::list<Transfer> transfers_;  // most recently used first
};

}  // namespace flamewire::agent
