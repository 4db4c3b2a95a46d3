// A .flamewire file: one session as a tar archive in zstd, NAME/stream.flw with what travels with it beside
// (side_files.h). `tar --zstd -tf` lists it. What comes from outside is read by name and kind: nothing but these files is
// written, nowhere but into the directory that the caller gives.
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
    UniqueFd fd;  // read from the start
    std::uint64_t size = 0;
};
// The session whose stream is at `stream_path`, as far as it is written, in a nameless file in `scratch_dir`. Side files
// that are not there are left out. Blocking, for long.
Result<ArchiveFile> write_archive(const std::string& id, const std::string& stream_path,
                                  const std::string& scratch_dir);

// Whether unpacked bytes begin a tar archive. `beginning`: 512 bytes of it at least.
bool is_tar(std::string_view beginning);

// Reads an unpacked archive into `directory`, which is empty: stream.flw and what travels with it. The answer is the
// session's name in the archive, "" when it has none that a directory could have here. invalid: no archive of a session,
// cut off, or something that none has (links, holes, two sessions, large side files). What was written before stays behind.
Result<std::string> read_archive(profile::ImportSource& from, const std::string& directory);

}  // namespace flamewire::server
