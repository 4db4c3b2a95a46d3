// Reading and writing whole files and ranges without streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace flamewire {

// Opens read-only with O_CLOEXEC.
Result<UniqueFd> open_read(const std::string& path);

// The whole file (also of /proc and /sys, where st_size says nothing); too_large over `limit` bytes.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{64} << 20);

// Up to `size` bytes at `offset`; a shorter answer means end of file.
Result<std::string> read_range(int fd, std::uint64_t offset, std::size_t size);

// Writes all of `bytes` to `fd`, retrying short writes and EINTR.
Result<std::size_t> write_all(int fd, Bytes bytes);

// Replaces a file in one step, so that a reader sees the old one or the new one.
Result<bool> replace_file(const std::string& path, std::string_view bytes);

}  // namespace flamewire
