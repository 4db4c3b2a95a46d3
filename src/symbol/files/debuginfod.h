// Debug info, programs and source files by build-id from debuginfod servers, through the machine's libdebuginfod, which
// is loaded when it is wanted: it brings its own HTTP and certificates. Nothing here is ever asked unless a person named
// a server. Files come into a folder as FOLDER/<build-id in hex>/debuginfo and …/executable, and that a server has none
// of one is remembered there for ten minutes (an empty file); both are libdebuginfod's ways.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

struct debuginfod_client;

namespace flamewire::symbol {

// Loads the library, and tells it servers, folder and the most bytes that a file may have, which are settings of the
// process: to be called once, before threads begin. unsupported: a sentence that says what to install.
Result<bool> prepare_debuginfod(const std::vector<std::string>& urls, const std::string& folder,
                                std::uint64_t limit_bytes);

// "http://host:8002", "https://…" and "file://…" as they are; "env" is what DEBUGINFOD_URLS says. invalid: one sentence.
Result<std::vector<std::string>> debuginfod_urls(const std::vector<std::string>& given);

// Where what came for a build-id (raw bytes) is: its debug info, and the program or library itself.
std::string debuginfod_file(const std::string& folder, const std::string& build_id);
std::string debuginfod_executable(const std::string& folder, const std::string& build_id);

// Deletes what was used longest ago until the folder has at most `limit_bytes`; what is of `keep` (raw build-id) stays.
void limit_debuginfod_folder(const std::string& folder, std::uint64_t limit_bytes, const std::string& keep);

// One thread's connection; usable after prepare_debuginfod().
class DebuginfodClient {
public:
    // Bytes that are here, and of all (0: not known yet). The answer says whether to go on.
    using Progress = std::function<bool(std::uint64_t got, std::uint64_t total)>;

    DebuginfodClient();
    ~DebuginfodClient();
    DebuginfodClient(const DebuginfodClient&) = delete;
    DebuginfodClient& operator=(const DebuginfodClient&) = delete;

    // The path of the debug info of a build, and before it that of the common file which `dwz` split off it. Blocking,
    // at most as long as DEBUGINFOD_TIMEOUT (90 s) brings nothing. not_found: no server has it; closed: no server
    // answers, or `progress` said to end; invalid: what came is not of that build, and is gone again; too_large.
    Result<std::string> debug_info(const std::string& build_id, const Progress& progress);

    // The path of the program or library itself, which has the code and a symbol table at best. Errors as above.
    Result<std::string> executable(const std::string& build_id, const Progress& progress);

    // The path of a source file of a build, by the absolute name that its debug info has. Errors as above, but that
    // nothing tells whether the file is the right one.
    Result<std::string> source(const std::string& build_id, const std::string& file, const Progress& progress);

private:
    template <class Call>
    Result<std::string> request(const Progress& progress, const char* what, const Call& call);
    enum class Kind : std::uint8_t { debug_info, executable };
    Result<std::string> find(Kind kind, const std::string& build_id, const Progress& progress);

    debuginfod_client* client_ = nullptr;
};

}  // namespace flamewire::symbol
