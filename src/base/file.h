// Reading and writing whole files and ranges without streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/system.h"

namespace flamewire {

// Opens read-only with O_CLOEXEC.
Result<UniqueFd> open_read(const std::string& path);

// The whole file (also of /proc and /sys, where st_size says nothing); too_large over `limit` bytes.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{64} << 20);

// Up to `size` bytes at `offset`; a shorter answer means end of file.
Result<std::string> read_range(int fd, std::uint64_t offset, std::size_t size);

// Writes all of `bytes` to `fd`, retrying short writes and EINTR.
Result<std::size_t> write_all(int fd, Bytes bytes);

// stat(2) of the path; nothing if it fails.
std::optional<FileStatus> file_status(const std::string& path);

// Whether what is written must be on the disk when the call returns.
enum class Durable : bool { no, yes };
// Makes or replaces the file in one step: a reader sees the old or the new one, whole. Writes PATH.new first; a failure
// leaves what was there. `mode`: who may read it, as chmod counts.
Result<bool> replace_file(const std::string& path, Bytes bytes, Durable durable = Durable::no, unsigned mode = 0644);

// Makes the folder, and those above it that are missing, for their owner alone (0700).
Result<bool> make_private_folders(const std::string& path);

// Makes the names in a directory durable, where the file system can.
void sync_directory(const std::string& path);

}  // namespace flamewire
