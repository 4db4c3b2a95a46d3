// A .flamewire file: one session as a tar archive in zstd. It holds NAME/stream.flw and its side files (side_files.h);
// `tar --zstd -tf` lists them. Reading an untrusted archive checks names and kinds: it writes only these files, and
// only into the directory that the caller gives.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::server {

struct ArchiveFile {
    UniqueFd fd;  // positioned at the start
    std::uint64_t size = 0;
};
// Archives the session whose stream is at `stream_path`, up to its current end, into an unnamed file in `scratch_dir`.
// Skips side files that do not exist. Blocking, for long.
Result<ArchiveFile> write_archive(const std::string& id, const std::string& stream_path,
                                  const std::string& scratch_dir);

// Whether unpacked bytes begin a tar archive. `beginning`: at least its first 512 bytes.
bool is_tar(std::string_view beginning);

// Reads an unpacked archive into `directory`, which must be empty. Returns the session's name in the archive, or "" if
// that cannot be a directory name here. invalid: not an archive of one session, truncated, or with forbidden content
// (links, holes, two sessions, large side files). On error, files already written stay behind.
Result<std::string> read_archive(profile::ImportSource& from, const std::string& directory);

}  // namespace flamewire::server
