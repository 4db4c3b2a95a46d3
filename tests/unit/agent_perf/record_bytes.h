// Perf records as the kernel writes them, for tests. They follow linux/perf_event.h and are independent of the
// decoder's tables.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace flamewire::agent {

class RecordBytes {
public:
    RecordBytes(std::uint32_t type, std::uint16_t misc) { u32(type).u16(misc).u16(0); }

    RecordBytes& u16(std::uint16_t value) { return raw(&value, sizeof value); }
    RecordBytes& u32(std::uint32_t value) { return raw(&value, sizeof value); }
    RecordBytes& u64(std::uint64_t value) { return raw(&value, sizeof value); }
    RecordBytes& text(std::string_view text) {  // with NUL, padded to 8
        std::string padded(text);
        padded.resize((text.size() / 8 + 1) * 8);
        return raw(padded.data(), padded.size());
    }
    // pid, tid, time, cpu, res, identifier
    RecordBytes& trailer(std::uint32_t pid, std::uint32_t tid, std::uint64_t time, std::uint32_t cpu,
                         std::uint64_t id) {
        return u32(pid).u32(tid).u64(time).u32(cpu).u32(0).u64(id);
    }
    RecordBytes& raw(const void* data, std::size_t size) {
        const auto* const first = static_cast<const char*>(data);
        bytes_.insert(bytes_.end(), first, first + size);
        return *this;
    }

    // The record with its size set, in 8-byte aligned words.
    std::vector<std::uint64_t> words() const {
        std::vector<std::uint64_t> words((bytes_.size() + 7) / 8);
        std::memcpy(words.data(), bytes_.data(), bytes_.size());
        const auto size = static_cast<std::uint16_t>(words.size() * 8);
        std::memcpy(static_cast<char*>(static_cast<void*>(words.data())) + 6, &size, sizeof size);
        return words;
    }

private:
    std::vector<char> bytes_;
};

inline Bytes as_bytes(const std::vector<std::uint64_t>& words) { return std::as_bytes(std::span(words)); }

// PERF_RECORD_SAMPLE = 9: id, ip, pid, tid, time, cpu, res, period, nr, ips
inline RecordBytes sample_bytes(std::uint64_t id, std::uint64_t time, const std::vector<std::uint64_t>& chain = {},
                                std::uint16_t misc = 2) {
    RecordBytes record(9, misc);
    record.u64(id).u64(0x401000).u32(100).u32(101).u64(time).u32(3).u32(0).u64(1'001'001).u64(chain.size());
    for (const std::uint64_t ip : chain) record.u64(ip);
    return record;
}

// PERF_RECORD_FORK = 7, EXIT = 4: pid, ppid, tid, ptid, time, trailer
inline RecordBytes task_bytes(bool exit, std::uint32_t tid, std::uint32_t parent_tid, std::uint64_t time,
                              std::uint64_t id) {
    RecordBytes record(exit ? 4 : 7, 0);
    record.u32(100).u32(100).u32(tid).u32(parent_tid).u64(time).trailer(100, parent_tid, time, 0, id);
    return record;
}

}  // namespace flamewire::agent
