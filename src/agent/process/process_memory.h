// Reads words from a live process's memory. The process continues to run, so the result may be outdated at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace flamewire::agent {

inline constexpr std::size_t most_words_at_once = 1024;

// Reads words of `word_size` (4 or 8) bytes at `addresses`, at most most_words_at_once, into `values`, which has the
// same length. Returns the number of words read: reading stops at the first unmapped address. Error if the process
// cannot be read at all: `permission`, or it is gone.
Result<std::size_t> read_words(std::uint32_t pid, std::size_t word_size, std::span<const std::uint64_t> addresses,
                               std::span<std::uint64_t> values);

// The same with /proc/PID/mem, one system call per word, where process_vm_readv is unsuitable: it takes native
// pointers, so a 32-bit agent cannot address a 64-bit process, and some kernels are built without it.
Result<std::size_t> read_words_of_file(std::uint32_t pid, std::size_t word_size,
                                       std::span<const std::uint64_t> addresses, std::span<std::uint64_t> values);

// End of the mapping that contains `address`; 0 if there is none, or the maps cannot be read.
std::uint64_t end_of_area(const std::string& proc_root, std::uint32_t pid, std::uint64_t address);

}  // namespace flamewire::agent
