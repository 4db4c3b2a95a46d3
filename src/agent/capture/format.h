// The file format of a capture: every input of one recording's sampler thread, in the order in which it was consumed.
//
//   file   = magic, chunk*
//   chunk  = size of the zstd frame (32 bits, little-endian), one zstd frame with complete entries
//   entry  = call (1 byte), arguments, result; the last two prefixed with their length as a varint
//
// A file that is cut inside a chunk is valid up to that chunk. Arguments and results consist of varints (base/varint.h)
// and bytes. A result starts with the return value of the call as a zigzag varint, -errno on failure. Descriptors are
// numbered in the order in which they were opened ("handle"), rings in the order in which they were mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flamewire::agent {

inline constexpr std::string_view capture_magic = "FLWCAP\x01\n";
// Decompressed. The content of a full ring is a single entry, and rings have up to 64 MiB.
inline constexpr std::size_t max_capture_chunk_bytes = std::size_t{256} << 20;

enum class Call : std::uint8_t {
    open = 1,      // flags, path -> handle
    open_in_root,  // flags, length of root, root, path -> handle
    read,          // handle -> bytes
    read_at,       // handle, offset, size -> bytes
    status_of,     // handle -> device, inode, size, modified, changed (zigzag), user, bits: regular, directory, private
    status,        // 1: follow links, path -> the same
    read_link,     // path -> bytes
    list,          // path -> names, each with its length
    read_memory,   // pid, word size, number of words, first address -> bytes
    now,           // clock -> difference from the previous reading of that clock (zigzag), without a return value
    constant,      // which -> value, without a return value
    input,         // name -> bytes, without a return value
    // Kernel (agent/perf/kernel.h). An attribute is type, config, config1, config2, sample_type.
    perf_open,   // attribute, pid and cpu (zigzag), handle + 1 of the leader and of the control group -> handle
    perf_ioctl,  // handle, request
    perf_id,     // handle -> id
    perf_read,   // handle -> values
    perf_map,    // handle, size
    perf_head,   // ring -> head, bytes since the previous head, without a return value
    perf_poll,   // -> index and events of each ready file. Starts a round
    truncated,   // -> why the capture ends before the recording, without a return value
};

}  // namespace flamewire::agent
