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

// Reads the whole file. Also works in /proc and /sys, where st_size is meaningless. Over `limit` bytes: too_large.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{64} << 20);

// Reads up to `size` bytes at `offset`. A shorter result means end of file.
Result<std::string> read_range(int fd, std::uint64_t offset, std::size_t size);

// Writes all of `bytes` to `fd`, retrying short writes and EINTR.
Result<std::size_t> write_all(int fd, Bytes bytes);

// stat(2) of the path, or nullopt if it fails.
std::optional<FileStatus> file_status(const std::string& path);

// Whether the written data must be on disk when the call returns.
enum class Durable : bool { no, yes };
// Creates or replaces the file atomically: a reader sees either the old or the new contents. Writes PATH.new first. On
// failure the old file stays. `mode` is the permission bits, as for chmod(2): by default only its owner can read it.
Result<bool> replace_file(const std::string& path, Bytes bytes, Durable durable = Durable::no, unsigned mode = 0600);

// Creates the directory and its missing parents, accessible only by their owner (0700).
Result<bool> make_private_folders(const std::string& path);

// Makes the entries of a directory durable, if the file system supports it.
void sync_directory(const std::string& path);

}  // namespace flamewire
