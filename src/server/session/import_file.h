// Imports one file as a session. A recording of our own format is adopted unchanged, and an archive of a session with
// its side files. A file of another tool, which may be compressed, is read by its importer. The content determines the
// format.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "profile/formats/import.h"
#include "server/session/session.h"
#include "symbol/types/config.h"

namespace flamewire::server {

// Default memory limit for importing one file of another tool (--import-memory).
inline constexpr std::uint64_t default_import_memory = std::uint64_t{1} << 30;

// Where an import creates its session, and its limits.
struct ImportTarget {
    std::string scratch_dir;        // for unpacked files, which have no name there
    const symbol::Config& symbols;  // finds the code of modules, for stacks that are unwound during the import
    // Creates a session for an importer's data.
    std::function<Result<std::shared_ptr<Session>>(const wire::RecordingId& recording)> create;
    // The file itself is a session.
    std::function<Result<std::shared_ptr<Session>>()> import_stream;
    // The same for the content of an archive (archive.h).
    std::function<Result<std::shared_ptr<Session>>(profile::ImportSource& archive)> import_archive;
    // The import failed: discard the session that was created.
    std::function<void(const Session& session)> discard;
    std::function<void(std::uint64_t read_bytes, std::uint64_t total_bytes)> progress;
    // Limit for heap memory, including the session's (heap_use.h). It is checked with each piece that is read and each
    // batch that is made, so one of these can exceed it.
    std::uint64_t memory_bytes = default_import_memory;
    // Whether to cancel the import; called as often as the memory is checked. Empty: never.
    std::function<bool()> cancelled{};
};

// `name` is the file's name in messages. Addresses are not symbolized yet. invalid: one sentence. too_large: the same,
// about the memory or the size of the unpacked content. closed: canceled. Blocking, for long.
Result<std::shared_ptr<Session>> import_file(const std::string& path, const std::string& name,
                                             const ImportTarget& target);

}  // namespace flamewire::server
