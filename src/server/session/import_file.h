// One file that somebody has, made a session: a recording of our own is taken as it is, an archive of a session with what
// is beside it, a file of another tool, maybe compressed, is read by its importer. What it is, its content tells.
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

// Memory that the import of one file of another tool may take, by default (--import-memory).
inline constexpr std::uint64_t default_import_memory = std::uint64_t{1} << 30;

// Where the session comes to be.
struct ImportPlace {
    std::string scratch_dir;        // for unpacked files, which have no name there
    const symbol::Config& symbols;  // finds the code of modules, for stacks that are unwound here
    // A new session for what an importer makes.
    std::function<Result<std::shared_ptr<Session>>(const wire::RecordingId& recording)> create;
    // The file is a session itself.
    std::function<Result<std::shared_ptr<Session>>()> adopt;
    // The same, of what an archive holds (archive.h).
    std::function<Result<std::shared_ptr<Session>>(profile::ImportSource& archive)> adopt_archive;
    // The import failed: the session that was created is to go.
    std::function<void(const Session& session)> discard;
    std::function<void(std::uint64_t read_bytes, std::uint64_t total_bytes)> progress;
    // Bytes of heap memory, those of the session included (heap_use.h). Looked at with each piece that is read and each
    // batch that is made: one of these can go beyond it.
    std::uint64_t memory_bytes = default_import_memory;
    // Whether to end it, asked as often as the memory is looked at; none: never.
    std::function<bool()> cancelled{};
};

// `name` is what a person calls the file. Addresses have no names yet. invalid: one sentence; too_large: the same, about
// the memory or about what a compressed file holds; closed: it was cancelled. Blocking, for long.
Result<std::shared_ptr<Session>> import_file(const std::string& path, const std::string& name,
                                             const ImportPlace& place);

}  // namespace flamewire::server
