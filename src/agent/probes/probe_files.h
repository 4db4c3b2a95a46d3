// Finds the files whose code a probe names, as the recorded processes see them: in their mappings, their root directory
// and the usual folders of libraries and programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::agent {

// What a recording will record.
struct ProbeTarget {
    std::vector<std::uint32_t> pids;  // running processes; empty: the machine, or a command that has not started
    std::string program;              // file of a command that has not started
    // A server may probe only files whose code these processes have mapped, because it may profile only some processes.
    bool mapped_only = false;
    bool by_server = false;  // it chose the probe
};

struct ProbeFile {
    std::string path;  // as the process sees it
    UniqueFd file;     // a regular file, open for reading
};

// `name` is a path, or the last part of one: "libc.so.6", or "libc" for any libc.so*. Returns each file once, also if
// several processes use it. not_found, with a sentence, if there is none.
Result<std::vector<ProbeFile>> find_probe_files(const std::string& name, const ProbeTarget& target);

// Paths of the files whose code these processes have mapped, each once.
std::vector<std::string> mapped_code_files(const std::vector<std::uint32_t>& pids);

// Whether a mapped file has that name: its last part, or all of that before ".so".
bool has_file_name(std::string_view path, std::string_view name);

}  // namespace flamewire::agent
