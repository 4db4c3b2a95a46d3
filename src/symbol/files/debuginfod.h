// Downloads debug info, programs and source files by build-id from debuginfod servers. Uses the machine's
// libdebuginfod, which brings its own HTTP and certificates and is loaded on demand. Nothing is requested unless a
// person names a server. libdebuginfod stores files in a folder as FOLDER/<build-id in hex>/debuginfo and …/executable.
// An empty file there records for ten minutes that no server has the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

struct debuginfod_client;

namespace flamewire::symbol {

// Loads the library and sets its servers, folder and maximum file size. These settings belong to the process, so call
// this once, before any thread starts. unsupported: the error is a sentence that states what to install.
Result<bool> prepare_debuginfod(const std::vector<std::string>& urls, const std::string& folder,
                                std::uint64_t limit_bytes);

// Returns "http://host:8002", "https://…" and "file://…" unchanged, and replaces "env" by the value of DEBUGINFOD_URLS.
// invalid: the error is one sentence.
Result<std::vector<std::string>> debuginfod_urls(const std::vector<std::string>& given);

// Where downloads for a build-id (raw bytes) are: its debug info, and the program or library itself.
std::string debuginfod_file(const std::string& folder, const std::string& build_id);
std::string debuginfod_executable(const std::string& folder, const std::string& build_id);

// Deletes the least recently used builds until the folder has at most `limit_bytes`. Keeps the build `keep` (raw
// build-id).
void limit_debuginfod_folder(const std::string& folder, std::uint64_t limit_bytes, const std::string& keep);

// A connection for one thread. Call prepare_debuginfod() before.
class DebuginfodClient {
public:
    // Bytes received, and total bytes (0: not known yet). Return false to stop.
    using Progress = std::function<bool(std::uint64_t got, std::uint64_t total)>;

    DebuginfodClient();
    ~DebuginfodClient();
    DebuginfodClient(const DebuginfodClient&) = delete;
    DebuginfodClient& operator=(const DebuginfodClient&) = delete;

    // The path of the debug info of a build. If `dwz` moved shared debug info of it into a common file, downloads that
    // too. Blocks until DEBUGINFOD_TIMEOUT (90 s) passes without data. not_found: no server has it. closed: no server
    // answers, or `progress` returned false. invalid: the download is of another build, and was deleted. too_large.
    Result<std::string> debug_info(const std::string& build_id, const Progress& progress);

    // The path of the program or library itself, which has the code and at best a symbol table. Errors as above.
    Result<std::string> executable(const std::string& build_id, const Progress& progress);

    // The path of a source file of a build, by its absolute name in the debug info. Errors as above, but nothing
    // verifies that the file is the right one.
    Result<std::string> source(const std::string& build_id, const std::string& file, const Progress& progress);

private:
    template <class Call>
    Result<std::string> request(const Progress& progress, const char* what, const Call& call);
    enum class Kind : std::uint8_t { debug_info, executable };
    Result<std::string> find(Kind kind, const std::string& build_id, const Progress& progress);

    debuginfod_client* client_ = nullptr;
};

}  // namespace flamewire::symbol
