// Words out of a live process's memory. It goes on running meanwhile: what is read may be old a moment later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace flamewire::agent {

inline constexpr std::size_t most_words_at_once = 1024;

// Reads words of `word_size` (4 or 8) bytes at `addresses`, at most most_words_at_once, into `values`, which has as many.
// Answers how many were read: it ends at the first address that is not there. An error when the process cannot be read
// at all: `permission`, or it is gone.
Result<std::size_t> read_words(std::uint32_t pid, std::size_t word_size, std::span<const std::uint64_t> addresses,
                               std::span<std::uint64_t> values);

// The same by /proc/PID/mem, a system call for each word: for what process_vm_readv cannot do. It takes addresses as
// pointers of ours, so a 32-bit agent could not name those of a 64-bit process; and kernels are built without it.
Result<std::size_t> read_words_of_file(std::uint32_t pid, std::size_t word_size,
                                       std::span<const std::uint64_t> addresses, std::span<std::uint64_t> values);

// End of the mapping that holds `address`; 0 when there is none, or the maps cannot be read.
std::uint64_t end_of_area(const std::string& proc_root, std::uint32_t pid, std::uint64_t address);

}  // namespace flamewire::agent
